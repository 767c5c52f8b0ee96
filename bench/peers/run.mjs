// node --expose-gc run.mjs FRAMEWORK [--quick] [--cpu] [GRAPH...]
//
// Runs the graphs on one framework (a process runs one only: what one framework does to the
// compiler and the heap must not touch another) and prints a line of JSON for each:
// {"name", "ms", "runs"}, runs being null where the graph does not tell, or {"name", "error"}.
// After a graph was timed it runs once more, briefly, with its runs counted and checked.
import { graphs, useCpu } from "./graphs.mjs";

const [framework, ...rest] = process.argv.slice(2);
const quick = rest.includes("--quick");
const names = rest.filter((word) => !word.startsWith("--"));
if (rest.includes("--cpu")) useCpu();
const fw = (await import(`./${framework}.mjs`)).default;

// The framework with its runs counted.
function counting(inner) {
  let computed = 0;
  let effects = 0;
  const counted = {
    ...inner,
    computed: (fn) => inner.computed(() => (computed++, fn())),
    effect: (fn) =>
      inner.effect(() => {
        effects++;
        fn();
      }),
  };
  const counter = {
    reset() {
      computed = effects = 0;
    },
    check(expectedComputed, expectedEffects = effects) {
      if (computed === expectedComputed && effects === expectedEffects) return;
      throw new Error(
        `${computed} + ${effects} runs instead of ${expectedComputed} + ${expectedEffects}`,
      );
    },
  };
  return [counted, counter];
}

function measure(name, graph) {
  const { ms, runs } = graph(fw, { repeats: quick ? 2 : 0 });
  const full = graph.full && graph.full.computed + (graph.full.effects ?? 0);
  return { name, ms, runs: runs ?? full ?? null };
}

function verify(graph) {
  if (!graph.counted) return;
  const [counted, counter] = counting(fw);
  graph(counted, graph.counted, counter);
}

// Every kairo graph once, briefly: what a graph takes should not depend on which ran before it,
// nor on the compiler having seen no other graph, as in no real program.
for (const graph of Object.values(graphs)) {
  if (graph.counted?.iterations) graph(fw, { repeats: 1, iterations: 50 });
}

for (const [name, graph] of Object.entries(graphs)) {
  if (names.length && !names.includes(name)) continue;
  let line;
  try {
    line = measure(name, graph);
    if (!quick) verify(graph);
  } catch (error) {
    line = { name, error: String(error.message ?? error) };
  }
  console.log(JSON.stringify(line));
}
