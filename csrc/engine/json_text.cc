#include "json_text.h"

#include <cstdio>

namespace pto::engine {

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (unsigned char ch : text) {
    if (ch == '"' || ch == '\\') {
      out += '\\';
      out += static_cast<char>(ch);
    } else if (ch < 0x20) {
      char buffer[8];
      std::snprintf(buffer, sizeof(buffer), "\\u%04x", ch);
      out += buffer;
    } else {
      out += static_cast<char>(ch);
    }
  }
  return out + "\"";
}

std::string StatsText(const LaunchStats& s) {
  std::string out = "{";
  auto add = [&](const char* key, int64_t value) {
    out += (out.size() > 1 ? ", " : "") + Quoted(key) + ": " + std::to_string(value);
  };
  add("cores", s.cores);
  add("scalar_instructions", s.scalar_instructions);
  add("vector_instructions", s.vector_instructions);
  add("vf_scalar_instructions", s.vf_scalar_instructions);
  add("simt_thread_instructions", s.simt_thread_instructions);
  add("vector_functions", s.vector_functions);
  add("dma_commands", s.dma_commands);
  add("dma_bytes", s.dma_bytes);
  add("mad_commands", s.mad_commands);
  add("mad_operations", s.mad_operations);
  return out + "}";
}

}  // namespace pto::engine
