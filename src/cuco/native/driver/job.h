// The job: everything the driver is told before the run starts. Python writes it as lines of words (testbed/emulator.py);
// the words are explained beside the fields.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace cuco::driver {

struct Buffer {             // buffer RANK NAME DTYPE ROLE POISON BYTES NDIM EXTENT...
  std::string name;
  int dtype = 0;            // ncclDataType_t
  int role = 0;             // 0 in, 1 out, 2 inout, 3 scratch
  int poison = 0;           // byte that outputs and scratch are filled with before a step
  size_t bytes = 0;
  std::vector<int64_t> shape;

  bool is_input() const { return role == 0 || role == 2; }
  bool is_output() const { return role == 1 || role == 2; }
  bool is_poisoned() const { return role == 1 || role == 3; }
};

struct Param {              // param NAME int|float VALUE
  std::string name;
  bool is_float = false;
  int64_t i = 0;
  double f = 0;
};

struct Step {               // step KEY0 KEY1 CHECKED SNAPSHOT
  uint64_t key[2] = {0, 0}; // of the hashes of this step's outputs
  bool checked = true;      // hashed; a warm-up is not
  bool snapshot = false;    // outputs copied whole
};

enum class Mode { chain, isolated };

struct Segment {            // segment chain|isolated COUNT: the next COUNT steps
  Mode mode = Mode::isolated;
  size_t count = 0;
};

struct Job {
  std::string host_library;                     // host PATH
  std::string kernels_library;                  // kernels PATH
  std::string trace;                            // trace PATH, absent: no trace
  int result_fd = -1;                           // results FD
  int ranks = 0, lsa_team = 0;                  // ranks N; lsa_team N
  uint64_t seed = 0;                            // seed N
  bool data = true;                             // data 0: no inputs and no poison (timing of what is sliced)
  bool fixed_inputs = false;                    // fixed_inputs 1: every step's inputs are those of step 0
  int decoys = 0;                               // decoys N: further allocations around every buffer, up to N
  std::vector<std::vector<Buffer>> buffers;     // by rank
  std::vector<Param> params;
  std::vector<Step> steps;
  std::vector<Segment> segments;
  std::map<std::string, std::string> platform;  // set KEY VALUE: for the platform (policies, limits of the machine)
  std::map<std::string, int> registers;         // registers KERNEL N: per thread, by mangled name
};

// Reads a job from its text; throws std::runtime_error naming the line that is not understood.
Job parse_job(const std::string &text);

}  // namespace cuco::driver
