// Handlers over lane arrays that the builder itself needs.
#pragma once

#include "code.h"

namespace pto::engine {

Handler SpreadHandler(int element_bytes);                // d: lane array, a: scalar slot
Handler LaneMoveHandler(int element_bytes, bool merge);  // d, a: lane arrays; e: elements per thread
Handler LaneWidenHandler(DType from);                    // d: i64 lane array, a: lane array

// Divergent control flow (ops_simt_control.cc). `d`: lane array for the new mask, `b`: scalar slot for the saved state.
const Inst* LaneIf(Context& c, const Inst* in);    // a: condition; jump: to the else part
const Inst* LaneElse(Context& c, const Inst* in);  // a: condition; jump: to the end
const Inst* LaneEnd(Context& c, const Inst* in);
const Inst* LaneSave(Context& c, const Inst* in);   // b: where the mask is kept
const Inst* LaneWhile(Context& c, const Inst* in);  // a: condition; jump: to the end
const Inst* LaneFor(Context& c, const Inst* in);  // a: lo, c: hi, e: iv, imm: step lane arrays of i64; jump: to the end
const Inst* LaneNext(Context& c, const Inst* in);  // c: hi, e: iv, imm: step; jump: to the body

}  // namespace pto::engine
