// Runs a program of this folder on a real GPU: prints what errors.expected must say, returns the failed checks.
// nvcc -std=c++20 -arch=sm_90 -default-stream per-thread PROGRAM.cu main_gpu.cc
extern "C" int run(int rank, int ranks);
int main() { return run(0, 1); }
