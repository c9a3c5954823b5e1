// Time, what bounds it, shares of the peaks, pipes of the slowest core.
function overviewPanel(section, launch, page) {
  section.append(make("h2", { textContent: `${launch.kernel}, ${plural(launch.grid, "block")}` }));
  const { timing } = launch;
  const card = (label, value) => make("div", {}, make("b", { textContent: value }), make("span", { className: "faint", textContent: label }));
  const meter = (label, part, whole, text, style = "") => make("div", { className: "meter" }, make("span", { textContent: label }),
    make("i", {}, make("s", { style: `width: ${whole ? Math.min(100, (100 * part) / whole) : 0}%; ${style}` })), make("span", { textContent: text }));
  if (timing) {
    section.append(make("div", { className: "cards" },
      card(`cycles at ${timing.clock_ghz} GHz`, format(Math.round(timing.cycles))), card("time, modelled", microseconds(timing.microseconds)),
      card("read from GM", bytes(timing.bytes.gm_read)), card("written to GM", bytes(timing.bytes.gm_written))));
    section.append(make("p", { textContent: `Bound by: ${timing.bound_by}` }));
    const [done, peak] = [timing.achieved, timing.peak];
    section.append(meter("GM", done.gm_bytes_per_second, peak.gm_bytes_per_second,
      `${rate(done.gm_bytes_per_second, "B")} of ${rate(peak.gm_bytes_per_second, "B")} (${percent(done.gm_bytes_per_second, peak.gm_bytes_per_second)})`));
    if (done.flops) {
      section.append(meter("FLOP", done.flops, peak.flops, `${rate(done.flops, "FLOP")} of ${rate(peak.flops, "FLOP")} (${percent(done.flops, peak.flops)})`));
    }
    const slowest = timing.cores.reduce((worst, core) => (!worst || core.cycles > worst.cycles ? core : worst), null);
    if (slowest) {
      const of = timing.cores.length === 1 ? "" : `, the slowest of ${plural(timing.cores.length, "core")}`;
      section.append(make("p", { className: "faint", textContent: `Pipes of ${coreLabel(slowest.block, slowest.core)}${of}, share of its time` }));
      for (const [name, pipe] of Object.entries(slowest.pipes)) {
        section.append(meter(name, pipe.busy, slowest.cycles, `${percent(pipe.busy, slowest.cycles)}, ${plural(pipe.commands, "command")}`,
          `background: var(--pipe-${name}, var(--pipe-other))`));
      }
    }
    if (timing.critical_path.length) section.append(criticalPath(timing, page));
  } else {
    const counts = Object.entries(launch.stats).filter(([, value]) => value);
    section.append(make("div", { className: "cards" }, ...counts.map(([name, value]) => card(name.replaceAll("_", " "), format(value)))));
  }
  for (const note of launch.notes) section.append(make("p", { className: "faint", textContent: `Note: ${note}` }));
}

function criticalPath(timing, page) {
  const sums = new Map();
  for (const step of timing.critical_path) {
    const key = `${step.line} ${step.pipe}`;
    const row = sums.get(key) || { ...step, cycles: 0 };
    row.cycles += step.cycles;
    sums.set(key, row);
  }
  const list = make("div", { className: "hot" }, make("span", { className: "faint", textContent: "Critical path" }));
  for (const row of [...sums.values()].sort((a, b) => b.cycles - a.cycles).slice(0, 8)) {
    list.append(make("button", { type: "button", title: page.text(row.line), onclick: () => page.select(row.line),
      textContent: `${row.pipe} line ${row.line}: ${percent(row.cycles, timing.cycles)}` }));
  }
  return list;
}
