// How exact the hardware's approximate functions are documented to be. docs/accuracy.md shows this table. Included
// several times, so there is no include guard.
//
// PTO_ACCURACY(operation, region, element types, ulp, source, certainty)
//   ulp: a result is at most this many units in the last place from the exact value; 0: there is no figure, and a
//        perturbed run leaves the operation alone
// Subnormal operands and results of every operation listed here count as zero of the same sign.
PTO_ACCURACY(vexp, "simd", kTakesF16 | kTakesF32, 1, "Ascend C documentation of 950, July 2026", "documented")
PTO_ACCURACY(vln, "simd", kTakesF16 | kTakesF32, 1, "Ascend C documentation of 950, July 2026", "documented")
PTO_ACCURACY(vsqrt, "simd", kTakesF16 | kTakesF32, 1, "Ascend C documentation of 950, July 2026", "documented")
PTO_ACCURACY(vdiv, "simd", kTakesF16 | kTakesF32, 1, "Ascend C documentation of 950, July 2026", "documented")
PTO_ACCURACY(vexpdif, "simd", kTakesF32, 1, "the same, of exp; the difference is rounded exactly",
             "inferred: no figure of its own")
PTO_ACCURACY(exp, "simt", kTakesF16 | kTakesF32, 1, "Ascend C documentation of 950, July 2026", "documented")
PTO_ACCURACY(sqrt, "simt", kTakesF16 | kTakesF32, 1, "Ascend C documentation of 950, July 2026", "documented")
PTO_ACCURACY(div, "simt", kTakesF16 | kTakesF32, 1, "Ascend C documentation of 950, July 2026", "documented")
PTO_ACCURACY(log, "simt", kTakesF16 | kTakesF32, 1, "Ascend C documentation of 950, July 2026",
             "documented as of the order of 1 ulp")
PTO_ACCURACY(pow, "simt", kTakesF16 | kTakesF32, 0, "Ascend C documentation of 950, July 2026",
             "no figure: software on top of exp and log")
PTO_ACCURACY(sin, "simt", kTakesF16 | kTakesF32, 0, "Ascend C documentation of 950, July 2026",
             "no figure: less exact for large operands")
PTO_ACCURACY(cos, "simt", kTakesF16 | kTakesF32, 0, "Ascend C documentation of 950, July 2026",
             "no figure: less exact for large operands")
