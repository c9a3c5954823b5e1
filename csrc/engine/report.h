// What a launch tells about itself when it is asked to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine.h"

namespace pto::engine {

// One of the two sides of a finding.
struct AccessPlace {
  int line = -1;
  std::string op;
  std::string pipe;
  int64_t block = 0;
  std::string core;  // in a block with several
  bool write = false;
  uint64_t execution = 0;  // of the instruction on its core, from 1; 0: not counted
  int64_t thread = -1;     // of a simt region
};

struct Finding {
  std::string kind;            // race, uninitialised, bounds, overlap, flag
  std::string hazard;          // RAW, WAR, WAW; empty when it is no race
  std::string message;         // one sentence
  std::string missing;         // what would order the two
  std::string memory;          // UB, L1, ..., GM
  std::string views;           // names of the buffers the bytes lie in, as far as the text tells
  std::string tensor;          // GM: name of the parameter, empty when the address came from memory
  int64_t begin = 0, end = 0;  // bytes
  int64_t count = 1;           // how often this pair of lines was found
  AccessPlace first, second;
};

struct LaunchReport {
  std::vector<Finding> findings;
  std::vector<std::string> notes;  // what was left out
  LaunchStats stats;
  std::string timing;    // JSON, empty without a timing model
  std::string timeline;  // JSON
  std::string memory;    // JSON
};

// What two accesses to the same bytes, in the order of the program, must not do.
const char* HazardName(bool first_writes, bool second_writes);

// Of a tensor by its number among the pointer parameters, from 1.
std::string TensorName(const Function& function, uint32_t tensor);

// The sentence of an error: both sides and what is missing.
std::string Describe(const Finding& finding);

// The error of a launch with findings, of which there is one at least. It names the first.
class FindingError : public Error {
 public:
  FindingError(const std::string& kernel, const std::string& file, const std::vector<Finding>& findings);
};

std::string FindingsJson(const std::vector<Finding>& findings);

}  // namespace pto::engine
