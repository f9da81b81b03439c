#include "history.h"

#include "finding.h"
#include "memory.h"
#include "runtime.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace cuco::emu {
namespace {

constexpr size_t kMaxVersions = 32768;   // of a word; beyond, the older half is forgotten

struct Named { uint64_t end; std::string name; uint32_t stride; };

struct Table {
  std::deque<Word> words;                               // stable addresses
  std::vector<Word*> unused;
  std::unordered_map<uint64_t, Word*> by_granule;       // address / 16 -> list
  std::map<uint64_t, uint64_t> internal;                // begin -> end
  std::map<uint64_t, Named> names;
  std::vector<uint64_t> ids;                            // WordId -> address
  std::unordered_map<uint64_t, WordId> id_of;
  std::vector<Word*> awaited;
  uint64_t serial = 0;
} table;

char* pointer(uint64_t address) { return reinterpret_cast<char*>(address); }

Word* take_word() {
  if (table.unused.empty()) return &table.words.emplace_back();
  Word* word = table.unused.back();
  table.unused.pop_back();
  return word;
}

void drop_word(Word* word) {
  if (word->awaited) std::erase(table.awaited, word);
  *word = Word();
  table.unused.push_back(word);
}

WordId id_for(uint64_t address) {
  WordId& id = table.id_of[address];
  if (!id) {
    table.ids.push_back(address);
    id = static_cast<WordId>(table.ids.size());
  }
  return id;
}

void start_history(Word& word) {
  Version base;
  base.serial = ++table.serial;
  base.mask = word.bytes_mask(word.address, word.size);
  std::memcpy(base.value, pointer(word.address), word.size);
  word.versions.clear();
  word.versions.push_back(std::move(base));
  word.seen.clear();
}

Word* new_word(uint64_t address, uint32_t bytes) {
  Word* word = take_word();
  word->address = address;
  word->size = bytes;
  word->id = id_for(address);
  start_history(*word);
  Word*& head = table.by_granule[address >> 4];
  word->next = head;
  head = word;
  return word;
}

bool overlap(const Word& word, uint64_t address, uint32_t bytes) {
  return word.address < address + bytes && address < word.address + word.size;
}

// Writes of narrower words, in order, as writes of bytes of the wider one.
void merge_into(Word& wide, std::vector<Word*>& parts) {
  std::vector<std::pair<const Version*, const Word*>> writes;
  Version& base = wide.versions.front();
  for (Word* part : parts) {
    const size_t at = part->address - wide.address;
    std::memcpy(base.value + at, part->versions.front().value, part->size);
    for (size_t i = 1; i < part->versions.size(); i++) writes.push_back({&part->versions[i], part});
    wide.seen.insert(wide.seen.end(), part->seen.begin(), part->seen.end());
    for (Thread* t : part->waiting) await(wide, t);
    wide.added += part->added;
    wide.stored += part->stored;
  }
  base.serial = 0;
  std::sort(writes.begin(), writes.end(), [](const auto& a, const auto& b) { return a.first->serial < b.first->serial; });
  for (const auto& [write, part] : writes) {
    const size_t at = part->address - wide.address;
    Version version = *write;
    std::memcpy(version.value, wide.versions.back().value, 16);
    version.mask = static_cast<uint16_t>(write->mask << at);
    std::memcpy(version.value + at, write->value, part->size);
    wide.versions.push_back(std::move(version));
  }
}

Word& widen(uint64_t address, uint32_t bytes, std::vector<Word*>& parts) {
  uint64_t lo = address, hi = address + bytes;
  for (Word* part : parts) lo = std::min(lo, part->address), hi = std::max(hi, part->address + part->size);
  uint32_t size = bytes;
  while (lo / size * size + size < hi) size *= 2;
  lo = lo / size * size;
  Word*& head = table.by_granule[lo >> 4];
  for (Word** at = &head; *at;) {
    if (overlap(**at, lo, size)) {
      if (std::find(parts.begin(), parts.end(), *at) == parts.end()) parts.push_back(*at);
      *at = (*at)->next;
    } else {
      at = &(*at)->next;
    }
  }
  Word* wide = new_word(lo, size);
  merge_into(*wide, parts);
  for (Word* part : parts) drop_word(part);
  return *wide;
}

}  // namespace

Word& word_at(uint64_t address, uint32_t bytes) {
  std::vector<Word*> parts;
  auto it = table.by_granule.find(address >> 4);
  for (Word* word = it == table.by_granule.end() ? nullptr : it->second; word; word = word->next) {
    if (word->address <= address && address + bytes <= word->address + word->size) {
      refresh(*word);
      return *word;
    }
    if (overlap(*word, address, bytes)) parts.push_back(word);
  }
  return parts.empty() ? *new_word(address, bytes) : widen(address, bytes, parts);
}

Word* find_word(uint64_t address) {
  auto it = table.by_granule.find(address >> 4);
  for (Word* word = it == table.by_granule.end() ? nullptr : it->second; word; word = word->next)
    if (overlap(*word, address, 1)) return word;
  return nullptr;
}

bool refresh(Word& word) {
  if (std::memcmp(word.newest().value, pointer(word.address), word.size) == 0) return false;
  start_history(word);
  return true;
}

bool is_internal(uint64_t address) {
  auto it = table.internal.upper_bound(address);
  return it != table.internal.begin() && address < std::prev(it)->second;
}

Version& append(Word& word, uint16_t mask, const Event& writer, int rank) {
  if (word.versions.size() >= kMaxVersions)
    word.versions.erase(word.versions.begin(), word.versions.begin() + kMaxVersions / 2);
  Version& version = word.versions.emplace_back();
  version.serial = ++table.serial;
  version.mask = mask;
  version.writer = writer;
  version.rank = rank;
  std::memcpy(version.value, pointer(word.address), word.size);
  scheduler().made_progress();
  if (!word.waiting.empty()) wake_waiters(word);
  return version;
}

void wake_waiters(Word& word) {
  std::vector<Thread*> woken;
  woken.swap(word.waiting);
  for (Thread* t : woken) make_ready(t);
}

void await(Word& word, Thread* t) {
  word.waiting.push_back(t);
  if (!word.awaited) table.awaited.push_back(&word);
  word.awaited = true;
}

std::vector<Word*>& awaited_words() {
  std::erase_if(table.awaited, [](Word* word) { return !(word->awaited = !word->waiting.empty()); });
  return table.awaited;
}

bool recheck_words() {
  bool any = false;
  for (Word* word : awaited_words()) {
    if (!refresh(*word)) continue;
    wake_waiters(*word);
    any = true;
  }
  return any;
}

WordRecord describe_word(WordId id) {
  const uint64_t address = table.ids[id - 1];
  return {memory().rank_of(address), name_of_word(address), address};
}

bool newest_version(uint64_t address, WordId& word, int64_t& number) {
  const Word* found = find_word(memory().canonical(address));
  if (!found) return false;
  word = found->id;
  number = found->newest().number;
  return true;
}

// ---- words.h

namespace {

uint64_t agent_write(uint64_t given, uint32_t size, const Stamp& stamp, bool add, uint64_t operand) {
  const uint64_t address = memory().canonical(given);
  Word& word = word_at(address, size);
  uint64_t value = 0;
  std::memcpy(&value, pointer(address), size);
  value = add ? value + operand : operand;
  std::memcpy(pointer(address), &value, size);
  const int rank = stamp.event ? agent_info(stamp.event.agent).rank : -1;
  const int64_t number = add ? word.added += static_cast<int64_t>(operand) : ++word.stored;
  Version& version = append(word, word.bytes_mask(address, size), stamp.event, rank);
  version.rmw = version.add = add;
  version.number = number;
  version.stamp = stamp;
  return value;
}

}  // namespace

uint64_t agent_store(uint64_t address, uint64_t value, uint32_t size, const Stamp& stamp) {
  return agent_write(address, size, stamp, false, value);
}

uint64_t agent_add(uint64_t address, uint64_t delta, uint32_t size, const Stamp& stamp) {
  return agent_write(address, size, stamp, true, delta);
}

namespace {

// Calls f(Word&) for every word in the range.
template <class F>
void each_word(uint64_t address, uint64_t bytes, F f) {
  for (uint64_t granule = address >> 4; granule <= (address + bytes - 1) >> 4; granule++) {
    auto it = table.by_granule.find(granule);
    if (it == table.by_granule.end()) continue;
    for (Word *word = it->second, *next; word; word = next) {
      next = word->next;
      if (word->address < address + bytes && address < word->address + word->size) f(*word);
    }
  }
}

}  // namespace

Clock released_into(uint64_t given, uint64_t bytes) {
  Clock clock;
  each_word(memory().canonical(given), bytes, [&](Word& word) {
    for (const Version& version : word.versions)
      if (version.stamp) version.stamp.join_into(clock);
  });
  return clock;
}

void forget(uint64_t given, uint64_t bytes) {
  each_word(memory().canonical(given), bytes, [&](Word& word) {
    if (word.waiting.empty()) start_history(word);
  });
}

void mark_internal(uint64_t given, uint64_t bytes) {
  const uint64_t address = memory().canonical(given);
  table.internal[address] = address + bytes;
}

void name_words(uint64_t given, uint64_t bytes, std::string name, uint32_t stride) {
  const uint64_t address = memory().canonical(given);
  table.names[address] = {address + bytes, std::move(name), stride};
}

std::string name_of_word(uint64_t given) {
  const uint64_t address = memory().canonical(given);
  auto it = table.names.upper_bound(address);
  if (it == table.names.begin()) return memory().describe(address);
  --it;
  if (address >= it->second.end) return memory().describe(address);
  const Named& named = it->second;
  const std::string index = named.stride ? " " + std::to_string((address - it->first) / named.stride) : "";
  return named.name + index + " of rank " + std::to_string(memory().rank_of(address));
}

WordId word_id(uint64_t address) { return id_for(memory().canonical(address)); }

}  // namespace cuco::emu
