// The figures of the timing model. docs/timing.md shows this table. Included several times, so there is no include
// guard.
//
// PTO_FIGURE(name, value, unit, what it is, source, certainty)
//   sources: AC: Ascend C documentation of 950, July 2026; PI: cost models of pto-isa; TL: latency estimator of the
//   tile-lang Ascend backend; D: derived from a figure of one of them; none: calibration parameter without a source
//
// --- the chip ---
PTO_FIGURE(kClockGhz, 1.65, "GHz", "clock of all cores", "AC", "documented")
PTO_FIGURE(kVectorCores, 64, "", "vector cores", "AC", "documented for 950PR")
PTO_FIGURE(kCubeCores, 32, "", "cube cores", "AC", "documented for 950PR")
PTO_FIGURE(kGmBytesPerCycle, 988, "B/cycle", "bandwidth of GM, shared by all cores: 1.63 TB/s",
           "AC, D: 302 MB in 186 us by 64 cores in rows of 2 KB", "measured")
PTO_FIGURE(kL2BytesPerCycle, 3090, "B/cycle", "bandwidth of L2 for what was moved before: 5.1 TB/s", "AC",
           "documented peak; capacity is not modelled")
PTO_FIGURE(kShortRowPenalty, 1.11, "", "share of the GM bandwidth that rows below 512 B take, to that of long ones",
           "AC, D: 302 MB in 206 us in rows of 128 B", "measured for 128 B")
PTO_FIGURE(kShortRowBytes, 512, "B", "rows from here on are long: a line of L2", "AC", "inferred")
PTO_FIGURE(kGmSectorBytes, 128, "B", "granule of GM that cores see", "AC", "documented")
// --- scalar unit ---
PTO_FIGURE(kScalarInstruction, 1, "cycle", "one instruction of the scalar unit", "none", "assumed: issues one a cycle")
PTO_FIGURE(kScalarDmaIssue, 34, "cycles", "issue of a transfer, its operands included",
           "AC, D: 36864 transfers of 128 B in 881 us, loop code deducted", "derived")
PTO_FIGURE(kScalarSyncIssue, 1, "cycle", "issue of a flag, token or barrier", "AC: setters take 1 cycle", "inferred")
PTO_FIGURE(kScalarCommandIssue, 8, "cycles", "issue of any other command", "none", "assumed")
PTO_FIGURE(kScalarGmMiss, 287, "cycles", "access to GM that misses the data cache of the scalar unit",
           "AC, D: as a GM atomic that returns its value", "inferred")
PTO_FIGURE(kScalarCacheBytes, 32768, "B", "data cache of the scalar unit, in lines of 64 B", "AC", "documented")
PTO_FIGURE(kQueueDepth, 32, "commands", "commands of a pipe that the scalar unit can be ahead", "AC",
           "documented for MTE1 and M of the previous generation")
// --- flags: no public figure exists ---
PTO_FIGURE(kFlagLatency, 0, "cycles", "from a set_flag or rls_buf that takes effect to the wait", "none", "unknown")
PTO_FIGURE(kIntraLatency, 0, "cycles", "the same between the cores of a block", "none", "unknown")
PTO_FIGURE(kCrossLatency, 287, "cycles", "the same among blocks, from the last of them",
           "AC, D: a round trip to GM, as a GM atomic", "assumed")
// --- transfers: latency, then bytes at a rate; the next transfer begins when the bytes of the one before have moved
PTO_FIGURE(kGmUbLatency, 90, "cycles", "GM to UB, rows that follow each other", "TL", "estimator")
PTO_FIGURE(kGmUbStridedLatency, 75, "cycles", "GM to UB, other rows", "TL", "estimator")
PTO_FIGURE(kGmUbRate, 100, "B/cycle", "GM to UB and to L1", "TL", "estimator")
PTO_FIGURE(kGmUbNarrowRate, 50, "B/cycle", "the same, rows below 128 B", "TL", "estimator")
PTO_FIGURE(kGmUbMediumRate, 102, "B/cycle", "the same, rows from 128 to 255 B: times their share of whole 128 B", "TL",
           "estimator")
PTO_FIGURE(kGmUbInterval, 13, "cycles", "least distance of two such transfers", "TL", "estimator")
PTO_FIGURE(kUbGmLatency, 180, "cycles", "UB to GM", "TL", "estimator")
PTO_FIGURE(kUbGmNarrowLatency, 440, "cycles", "UB to GM, rows below 128 B that do not follow each other", "TL",
           "estimator")
PTO_FIGURE(kUbGmRate, 115, "B/cycle", "UB to GM", "TL", "estimator")
PTO_FIGURE(kUbGmNarrowRate, 40, "B/cycle", "the same, rows below 128 B", "TL", "estimator")
PTO_FIGURE(kUbGmMediumRate, 86, "B/cycle", "the same, rows from 128 to 255 B: times their share of whole 128 B", "TL",
           "estimator")
PTO_FIGURE(kUbGmLongRate, 110, "B/cycle", "the same, rows from 256 to 511 B", "TL", "estimator")
PTO_FIGURE(kUbGmInterval, 10, "cycles", "least distance of two such transfers", "TL", "estimator")
PTO_FIGURE(kGmL1Latency, 190, "cycles", "GM to L1", "TL", "estimator")
PTO_FIGURE(kGmL1Interval, 64, "cycles", "least distance of two such transfers", "TL", "estimator")
PTO_FIGURE(kUbL1Latency, 43, "cycles", "UB to L1", "TL", "estimator")
PTO_FIGURE(kUbL1Rate, 128, "B/cycle", "UB to L1, of each vector core", "AC, TL", "documented peak")
PTO_FIGURE(kUbL1RowRate, 0.5, "1/cycle", "the same, rows that do not follow each other: times their width", "TL",
           "estimator, for two cores: half of it")
PTO_FIGURE(kUbL1ShortRow, 160, "B", "rows below this are slower", "TL", "estimator")
PTO_FIGURE(kUbL1ShortRowShare, 0.75, "", "by this factor", "TL", "estimator")
PTO_FIGURE(kUbUbRate, 128, "B/cycle", "UB to UB", "none", "assumed: a read and a write of half a vector each cycle")
PTO_FIGURE(kL1L0Rate, 256, "B/cycle", "L1 to L0A and L0B", "AC", "documented")
PTO_FIGURE(kL1L0Latency, 38, "cycles", "the same, each command; the next one waits", "AC 30 and TL 8, D",
           "fits the busy time of MTE1 in the product of 8192^3")
PTO_FIGURE(kL1ScaleRate, 32, "B/cycle", "L1 to L0A_MX, L0B_MX, the bias table and the fixpipe buffer", "AC",
           "documented")
PTO_FIGURE(kL1ScaleLatency, 30, "cycles", "L1 to L0A_MX and L0B_MX", "AC", "documented")
PTO_FIGURE(kL1BiasLatency, 20, "cycles", "L1 to the bias table", "AC", "documented")
PTO_FIGURE(kL1FixpipeLatency, 26, "cycles", "L1 to the fixpipe buffer", "AC", "documented")
PTO_FIGURE(kL1UbRate, 128, "B/cycle", "L1 to UB", "AC", "documented peak")
PTO_FIGURE(kFixpipeRate, 128, "B/cycle", "L0C to L1, UB and GM", "AC", "documented")
PTO_FIGURE(kFixpipeDualRate, 256, "B/cycle", "L0C to the UB of both vector cores", "AC", "documented")
PTO_FIGURE(kFixpipeElements, 64, "elements/cycle", "the same", "AC", "documented")
PTO_FIGURE(kFixpipeSkipSlowdown, 4, "", "the same, nz2dn of rows with a stride: by this factor", "AC", "documented")
PTO_FIGURE(kFixpipeHead, 26, "cycles", "the same, each command; the next one waits", "AC", "documented")
PTO_FIGURE(kFixpipeLatency, 58, "cycles", "from the start of a store to L1 or UB to its first result", "TL",
           "estimator")
PTO_FIGURE(kFixpipeGmLatency, 200, "cycles", "the same to GM", "TL", "estimator")
// --- cube ---
PTO_FIGURE(kMadCube, 16, "", "rows, columns and 16-bit products along k of one cycle; 8-bit: twice as many", "AC",
           "documented")
PTO_FIGURE(kMadF32Slowdown, 8, "", "cycles of f32 operands to those of HF32", "AC", "documented")
PTO_FIGURE(kMadHead, 8, "cycles", "each command", "TL; fits the busy time of M in the product of 8192^3", "measured")
PTO_FIGURE(kMadF32Head, 67, "cycles", "the same, f32 operands", "TL", "estimator")
PTO_FIGURE(kMadScaledHead, 25, "cycles", "the same, scaled operands", "TL", "estimator")
PTO_FIGURE(kMadScaledExtent, 48, "", "least m and n that scaled operands are charged for", "TL", "estimator")
// --- SIMD functions ---
PTO_FIGURE(kVectorLaunch, 23, "cycles", "from the start of a function to its first instruction", "PI",
           "parameter of a model")
PTO_FIGURE(kVectorDrain, 12, "cycles", "from its last result to its end", "PI", "parameter of a model")
PTO_FIGURE(kVectorIssue, 5, "instructions/cycle", "in order, into the window", "PI", "parameter of a model")
PTO_FIGURE(kVectorWindow, 58, "instructions", "issued and not started", "PI", "parameter of a model")
PTO_FIGURE(kVectorWrites, 2, "registers/cycle", "written", "AC", "documented")
PTO_FIGURE(kVectorForwarding, 4, "cycles", "by which a dependent instruction may start before the latency is over",
           "PI", "4 to 5 in a model")
PTO_FIGURE(kVectorLoop, 1, "cycle", "set-up of a loop", "PI", "parameter of a model")
PTO_FIGURE(kVectorLoopAgain, 7, "cycles", "between two runs of an inner loop", "PI", "parameter of a model")
PTO_FIGURE(kVectorScalar, 0.25, "cycles", "scalar instruction in a function: addresses are computed on the side",
           "none", "assumed")
PTO_FIGURE(kUbLoadPorts, 2, "accesses/cycle", "loads, or one load and one store", "AC", "documented")
PTO_FIGURE(kUbStorePorts, 1, "access/cycle", "stores", "AC", "documented")
// --- SIMT functions ---
PTO_FIGURE(kSimtSchedulers, 4, "warps/cycle", "instructions issued", "AC", "documented")
PTO_FIGURE(kSimtInstruction, 7, "cycles", "until a warp goes on behind an instruction", "none",
           "assumed: as the sum of a SIMD function")
PTO_FIGURE(kSimtSpecial, 17, "cycles", "the same, exp, log, sqrt, division", "none", "assumed: as in a SIMD function")
PTO_FIGURE(kSimtUb, 11, "cycles", "the same, access to UB", "AC, D", "measured for loads")
PTO_FIGURE(kSimtUbBase, 5.6, "cycles", "the same with conflicts: this, and a cycle for each access to one sub-bank",
           "AC, D: 37.6 cycles for 32 of them", "measured")
PTO_FIGURE(kSimtGm, 287, "cycles", "from an access to GM to the use of its value",
           "AC, D: as a GM atomic that returns its value", "inferred")
PTO_FIGURE(kSimtGmAtomic, 71, "cycles", "GM atomic whose old value is not used, each in its 128 B", "AC, D",
           "measured for one address")
PTO_FIGURE(kSimtGmAtomicReturn, 287, "cycles", "GM atomic whose old value is used, the same", "AC, D",
           "measured for one address")
