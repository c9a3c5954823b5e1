// The parsed program form: a tree of operations, before compilation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "dtypes.h"

namespace pto::engine {

struct Op;

struct Region {
  std::vector<uint32_t> arguments;
  std::vector<Op> ops;
};

struct Attribute {
  enum Tag : uint8_t { kInteger = 0, kString = 1, kFloat = 2 };
  std::string key;
  Tag tag = kInteger;
  int64_t integer = 0;
  double number = 0;
  std::string text;
};

struct Op {
  std::string name;
  int line = 0;
  std::vector<uint32_t> operands;
  std::vector<uint32_t> results;
  std::vector<Attribute> attributes;
  std::vector<Region> regions;

  const Attribute* Find(const char* key) const {
    for (const Attribute& a : attributes) {
      if (a.key == key) return &a;
    }
    return nullptr;
  }
};

struct FunctionTree {
  std::string name;
  std::string kernel_kind;
  int line = 0;
  std::vector<std::string> parameter_names;
  std::vector<uint32_t> parameter_values;
  std::vector<ValueType> types;  // by value id
  Region body;
};

struct ProgramTree {
  std::string source_file;
  std::vector<FunctionTree> functions;
};

// Throws Error when the bytes break the format (truncated, bad codes, indices out of range).
ProgramTree ReadProgram(const void* data, size_t size);

}  // namespace pto::engine
