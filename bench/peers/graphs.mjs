// The propagation graphs for the peers: the same graphs, sizes and checks as in bench/graphs_*.h.
//
// A graph is a function (fw, options) that returns { ms, runs } where it can say how many runs it
// took; every check that fails throws. options: repeats (0: as specified), iterations (kairo: a
// few rounds, used when runs are counted).
//
// Graphs are built inside a scope, so that they can be disposed of, but driven outside of it: in
// some frameworks a scope collects what is read in it.

// Milliseconds: wall time, or with useCpu the CPU time of the process.
let now = () => performance.now();

export function useCpu() {
  now = () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  };
}

function check(what, got, expected) {
  if (got !== expected) throw new Error(`${what}: ${got} instead of ${expected}`);
}

function fastest(repeats, run) {
  let best = Infinity;
  for (let i = 0; i < repeats; i++) {
    const start = now();
    run();
    const took = now() - start;
    if (took < best) best = took;
  }
  return best;
}

// ---- kairo ---------------------------------------------------------------------------------

// build(fw) returns the function of one iteration. `counts` per iteration: [computed, effects].
function kairo(build, counts) {
  const graph = (fw, options, counter) => {
    const rounds = options.iterations || 500;
    let iterate;
    const dispose = fw.scope(() => {
      iterate = build(fw);
    });
    for (let i = 0; i < 4; i++) iterate(i);
    counter?.reset();
    const ms = fastest(options.repeats || 10, () => {
      for (let i = 0; i < rounds; i++) iterate(i);
    });
    if (counter && counts) counter.check(counts[0] * rounds, counts[1] * rounds);
    dispose();
    return { ms };
  };
  graph.counted = { repeats: 1, iterations: 10 };
  graph.full = counts && { computed: counts[0] * 500, effects: counts[1] * 500 };
  return graph;
}

function busy() {
  let a = 0;
  for (let i = 0; i < 100; i++) a++;
  return a;
}

function avoidable(fw) {
  const head = fw.signal(0);
  const c1 = fw.computed(() => head.read());
  const c2 = fw.computed(() => (c1.read(), 0));
  const c3 = fw.computed(() => (busy(), c2.read() + 1));
  const c4 = fw.computed(() => c3.read() + 2);
  const c5 = fw.computed(() => c4.read() + 3);
  fw.effect(() => {
    c5.read();
    busy();
  });
  return () => {
    fw.batch(() => head.write(1));
    check("c5", c5.read(), 6);
    for (let i = 0; i < 1000; i++) {
      fw.batch(() => head.write(i));
      check("c5", c5.read(), 6);
    }
  };
}

function broad(fw) {
  const head = fw.signal(0);
  let last;
  let calls = 0;
  for (let i = 0; i < 50; i++) {
    const a = fw.computed(() => head.read() + i);
    const b = fw.computed(() => a.read() + 1);
    fw.effect(() => {
      b.read();
      calls++;
    });
    last = b;
  }
  return () => {
    fw.batch(() => head.write(1));
    calls = 0;
    for (let i = 0; i < 50; i++) {
      fw.batch(() => head.write(i));
      check("last", last.read(), i + 50);
    }
    check("calls", calls, 50 * 50);
  };
}

function deep(fw) {
  const head = fw.signal(0);
  let end = head;
  for (let i = 0; i < 50; i++) {
    const from = end;
    end = fw.computed(() => from.read() + 1);
  }
  let calls = 0;
  fw.effect(() => {
    end.read();
    calls++;
  });
  return () => {
    fw.batch(() => head.write(1));
    calls = 0;
    for (let i = 0; i < 50; i++) {
      fw.batch(() => head.write(i));
      check("end", end.read(), 50 + i);
    }
    check("calls", calls, 50);
  };
}

function diamond(fw) {
  const head = fw.signal(0);
  const nodes = [];
  for (let i = 0; i < 5; i++) nodes.push(fw.computed(() => head.read() + 1));
  const sum = fw.computed(() => {
    let total = 0;
    for (const node of nodes) total += node.read();
    return total;
  });
  let calls = 0;
  fw.effect(() => {
    sum.read();
    calls++;
  });
  return () => {
    fw.batch(() => head.write(1));
    check("sum", sum.read(), 10);
    calls = 0;
    for (let i = 0; i < 500; i++) {
      fw.batch(() => head.write(i));
      check("sum", sum.read(), (i + 1) * 5);
    }
    check("calls", calls, 500);
  };
}

function mux(fw) {
  const heads = Array.from({ length: 100 }, () => fw.signal(0));
  const all = fw.computed(() => Object.fromEntries(heads.map((head, i) => [i, head.read()])));
  const splits = heads.map((_, i) => fw.computed(() => all.read()[i]));
  const ends = splits.map((split) => fw.computed(() => split.read() + 1));
  for (const end of ends) {
    fw.effect(() => {
      end.read();
    });
  }
  return () => {
    for (let factor = 1; factor <= 2; factor++) {
      for (let i = 0; i < 10; i++) {
        fw.batch(() => heads[i].write(factor * i));
        check("t", ends[i].read(), factor * i + 1);
      }
    }
  };
}

function repeated(fw) {
  const head = fw.signal(0);
  const c = fw.computed(() => {
    let total = 0;
    for (let i = 0; i < 30; i++) total += head.read();
    return total;
  });
  let calls = 0;
  fw.effect(() => {
    c.read();
    calls++;
  });
  return () => {
    fw.batch(() => head.write(1));
    check("c", c.read(), 30);
    calls = 0;
    for (let i = 0; i < 100; i++) {
      fw.batch(() => head.write(i));
      check("c", c.read(), 30 * i);
    }
    check("calls", calls, 100);
  };
}

function triangle(fw) {
  const head = fw.signal(0);
  const list = [];
  let at = head;
  for (let i = 0; i < 10; i++) {
    const from = at;
    list.push(from);
    at = fw.computed(() => from.read() + 1);
  }
  const sum = fw.computed(() => {
    let total = 0;
    for (const node of list) total += node.read();
    return total;
  });
  let calls = 0;
  fw.effect(() => {
    sum.read();
    calls++;
  });
  return () => {
    fw.batch(() => head.write(1));
    check("sum", sum.read(), 55);
    calls = 0;
    for (let i = 0; i < 100; i++) {
      fw.batch(() => head.write(i));
      check("sum", sum.read(), 45 + 10 * i);
    }
    check("calls", calls, 100);
  };
}

function unstable(fw) {
  const head = fw.signal(0);
  const double = fw.computed(() => head.read() * 2);
  const inverse = fw.computed(() => -head.read());
  const c = fw.computed(() => {
    let total = 0;
    for (let i = 0; i < 20; i++) total += head.read() % 2 ? double.read() : inverse.read();
    return total;
  });
  let calls = 0;
  fw.effect(() => {
    c.read();
    calls++;
  });
  return () => {
    fw.batch(() => head.write(1));
    check("c", c.read(), 40);
    calls = 0;
    for (let i = 0; i < 100; i++) fw.batch(() => head.write(i));
    check("calls", calls, 100);
    check("c", c.read(), 20 * 2 * 99);
  };
}

function fib(n) {
  return n < 2 ? 1 : fib(n - 1) + fib(n - 2);
}

function hard(n) {
  return n + fib(16);
}

function mol(fw) {
  const numbers = [0, 1, 2, 3, 4];
  const pushed = [];
  const A = fw.signal(0);
  const B = fw.signal(0);
  const C = fw.computed(() => (A.read() % 2) + (B.read() % 2));
  const D = fw.computed(() => numbers.map((i) => ({ x: i + (A.read() % 2) - (B.read() % 2) })));
  const E = fw.computed(() => hard(C.read() + A.read() + D.read()[0].x));
  const F = fw.computed(() => hard(D.read()[2].x || B.read()));
  const G = fw.computed(() => C.read() + (C.read() || E.read() % 2) + D.read()[4].x + F.read());
  fw.effect(() => {
    pushed.push(hard(G.read()));
  });
  fw.effect(() => {
    pushed.push(G.read());
  });
  fw.effect(() => {
    pushed.push(hard(F.read()));
  });
  return (k) => {
    pushed.length = 0;
    fw.batch(() => {
      B.write(1);
      A.write(1 + 2 * k);
    });
    check("G", G.read(), 1607);
    fw.batch(() => {
      A.write(2 + 2 * k);
      B.write(2);
    });
    check("G", G.read(), 1604);
  };
}

// ---- cellx ---------------------------------------------------------------------------------

function cellxLayer(fw, p) {
  const q = [
    fw.computed(() => p[1].read()),
    fw.computed(() => p[0].read() - p[2].read()),
    fw.computed(() => p[1].read() + p[3].read()),
    fw.computed(() => p[2].read()),
  ];
  for (const node of q) {
    fw.effect(() => {
      node.read();
    });
  }
  return q;
}

function cellxOnce(fw, layers, before, after, counter) {
  const first = [1, 2, 3, 4].map((value) => fw.signal(value));
  let last = first;
  const dispose = fw.scope(() => {
    for (let i = 0; i < layers; i++) last = cellxLayer(fw, last);
  });
  counter?.reset();
  const start = now();
  const were = last.map((node) => node.read());
  fw.batch(() => {
    for (let i = 0; i < 4; i++) first[i].write(4 - i);
  });
  const are = last.map((node) => node.read());
  const ms = now() - start;
  check("before", were.join(), before.join());
  check("after", are.join(), after.join());
  counter?.check(4 * layers, 4 * layers);
  dispose();
  return ms;
}

function cellx(layers, before, after) {
  const graph = (fw, options, counter) => {
    const repeats = options.repeats || 10;
    let ms = 0;
    for (let i = 0; i < repeats; i++) ms += cellxOnce(fw, layers, before, after, counter);
    return { ms: (ms * 10) / repeats };
  };
  graph.counted = { repeats: 1 };
  graph.full = { computed: 4 * layers, effects: 4 * layers };
  return graph;
}

// ---- dynamic -------------------------------------------------------------------------------

// sfc32 seeded by xmur3a; both are public algorithms.
function random(seed) {
  let h = 2166136261;
  for (let i = 0; i < seed.length; i++) {
    let k = Math.imul(seed.charCodeAt(i), 3432918353);
    k = (k << 15) | (k >>> 17);
    h ^= Math.imul(k, 461845907);
    h = (h << 13) | (h >>> 19);
    h = (Math.imul(h, 5) + 3864292196) | 0;
  }
  h ^= seed.length;
  const next = () => {
    h ^= h >>> 16;
    h = Math.imul(h, 2246822507);
    h ^= h >>> 13;
    h = Math.imul(h, 3266489909);
    h ^= h >>> 16;
    return h | 0;
  };
  let [a, b, c, d] = [next(), next(), next(), next()];
  return () => {
    let t = (a + b) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    d = (d + 1) | 0;
    t = (t + d) | 0;
    c = (c + t) | 0;
    return (t >>> 0) / 4294967296;
  };
}

function staticNode(fw, sources) {
  return fw.computed(() => {
    let total = 0;
    for (const source of sources) total += source.read();
    return total;
  });
}

function dynamicNode(fw, sources) {
  const first = sources[0];
  const tail = sources.slice(1);
  return fw.computed(() => {
    let total = first.read();
    const skips = total & 1;
    const skip = total % tail.length;
    for (let i = 0; i < tail.length; i++) {
      if (skips && i === skip) continue;
      total += tail[i].read();
    }
    return total;
  });
}

function buildLayers(fw, shape) {
  const rnd = random("seed");
  const firsts = Array.from({ length: shape.width }, (_, i) => fw.signal(i));
  let row = firsts;
  for (let layer = 1; layer < shape.layers; layer++) {
    const before = row;
    row = before.map((_, i) => {
      const sources = [];
      for (let j = 0; j < shape.sources; j++) sources.push(before[(i + j) % shape.width]);
      return rnd() < shape.statics ? staticNode(fw, sources) : dynamicNode(fw, sources);
    });
  }
  const leaves = row.slice();
  const again = random("seed");
  for (let n = Math.round(shape.width * (1 - shape.read)); n > 0; n--) {
    leaves.splice(Math.floor(again() * leaves.length), 1);
  }
  fw.effect(() => {
    for (const leaf of leaves) leaf.read();
  });
  return { firsts, leaves };
}

function layers(shape) {
  const graph = (fw, options, counter) => {
    let graph;
    const dispose = fw.scope(() => {
      graph = buildLayers(fw, shape);
    });
    const { firsts, leaves } = graph;
    const run = () => {
      for (let i = 0; i < shape.iterations; i++) {
        const at = i % firsts.length;
        fw.batch(() => firsts[at].write(i + at));
        for (const leaf of leaves) leaf.read();
      }
      check("sum of the leaves", leaves.reduce((total, leaf) => total + leaf.read(), 0), shape.sum);
    };
    for (let i = options.repeats === 1 ? 1 : 3; i > 0; i--) run();
    counter?.reset();
    const ms = fastest(options.repeats || 5, run);
    counter?.check(shape.runs);
    dispose();
    return { ms };
  };
  graph.counted = { repeats: 1 };
  graph.full = { computed: shape.runs };
  return graph;
}

// ---- sbench --------------------------------------------------------------------------------

const COUNT = 1e5;

// [effects, reads of each, effects in a row that share their sources, writes to the first source]
function sbenchOnce(fw, [effects, reads, shared, writes]) {
  let sources = Array.from({ length: Math.ceil(effects / shared) * reads }, () => fw.signal(0));
  let calls = 0;
  globalThis.gc?.();
  const start = now();
  let dispose = fw.scope(() => {
    for (let i = 0; i < effects; i++) {
      const from = Math.floor(i / shared) * reads;
      if (reads === 0) fw.effect(() => void calls++);
      else if (reads === 1) effectOf1(sources[from]);
      else if (reads === 2) effectOf2(sources[from], sources[from + 1]);
      else effectOfMany(sources.slice(from, from + reads));
    }
  });
  for (let i = 0; i < writes; i++) fw.batch(() => sources[0].write(i));
  dispose();
  dispose = sources = null;
  globalThis.gc?.();
  const ms = now() - start;
  check("calls", calls, effects + (writes ? (writes - 1) * Math.min(effects, shared) : 0));
  return ms;

  function effectOf1(a) {
    fw.effect(() => {
      a.read();
      calls++;
    });
  }
  function effectOf2(a, b) {
    fw.effect(() => {
      a.read();
      b.read();
      calls++;
    });
  }
  function effectOfMany(many) {
    fw.effect(() => {
      for (const one of many) one.read();
      calls++;
    });
  }
}

function sbench(shapes) {
  return (fw, options) => {
    let ms = 0;
    for (const shape of shapes) {
      let best = Infinity;
      for (let i = 0; i < (options.repeats || 10); i++) best = Math.min(best, sbenchOnce(fw, shape));
      ms += best;
    }
    return { ms };
  };
}

function createSignals(fw, options) {
  let best = Infinity;
  for (let repeat = 0; repeat < (options.repeats || 10); repeat++) {
    globalThis.gc?.();
    const start = now();
    let signals = [];
    for (let i = 0; i < COUNT; i++) signals[i] = fw.signal(i);
    check("signal", signals[COUNT - 1].read(), COUNT - 1);
    signals = null;
    globalThis.gc?.();
    best = Math.min(best, now() - start);
  }
  return { ms: best };
}

// ---- chains --------------------------------------------------------------------------------

function chain(nodes, writes) {
  return (fw, options) => {
    const head = fw.signal(0);
    let end = head;
    for (let i = 0; i < nodes; i++) {
      const from = end;
      end = fw.computed(() => from.read() + 1);
      end.read(); // or the first read of the end would nest as deep as the chain is long
    }
    // Never disposed of: some frameworks do that by recursion along the chain.
    fw.effect(() => {
      end.read();
    });
    let written = 0;
    const run = () => {
      for (let i = 0; i < writes; i++) fw.batch(() => head.write(++written));
      check("end", end.read(), written + nodes);
    };
    run();
    const ms = fastest(options.repeats || 5, run);
    return { ms, runs: (nodes + 1) * writes };
  };
}

// 150,000 chains source -> a -> b -> effect, made one after the other, written at random.
function chains(perBatch) {
  const CHAINS = 150000;
  const WRITES = 200000;
  return (fw, options) => {
    const rnd = random("chains");
    const plus1 = (from) => fw.computed(() => from.read() + 1);
    const sources = [];
    let calls = 0;
    let written = 0;
    let result = { ms: Infinity };
    const dispose = fw.scope(() => {
      for (let i = 0; i < CHAINS; i++) {
        sources.push(fw.signal(0));
        const end = plus1(plus1(sources[i]));
        fw.effect(() => {
          end.read();
          calls++;
        });
      }
    });
    for (let repeat = 0; repeat <= (options.repeats || 3); repeat++) {
      calls = 0;
      const start = now();
      for (let i = 0; i < WRITES; i += perBatch) {
        fw.batch(() => {
          for (let j = 0; j < perBatch; j++) {
            sources[Math.floor(rnd() * CHAINS)].write(++written);
          }
        });
      }
      const ms = now() - start;
      if (perBatch === 1) check("calls", calls, WRITES);
      if (repeat > 0 && ms < result.ms) result = { ms, runs: 3 * calls };
    }
    dispose();
    return result;
  };
}

// ---- All of them ---------------------------------------------------------------------------

const shape = (sources, width, layers, statics, read, iterations, sum, runs) => ({
  sources, width, layers, statics, read, iterations, sum, runs,
});

export const graphs = {
  avoidable: kairo(avoidable, [2002, 0]),
  broad: kairo(broad, [5100, 2550]),
  deep: kairo(deep, [2550, 51]),
  diamond: kairo(diamond, [3006, 501]),
  mux: kairo(mux, [1836, 18]),
  repeated: kairo(repeated, [101, 101]),
  triangle: kairo(triangle, [1010, 101]),
  unstable: kairo(unstable, [202, 101]),
  molBench: kairo(mol),
  cellx1000: cellx(1000, [-3, -6, -2, 2], [-2, -4, 2, 3]),
  cellx2500: cellx(2500, [-3, -6, -2, 2], [-2, -4, 2, 3]),
  cellx5000: cellx(5000, [2, 4, -1, -6], [-2, 1, -4, -4]),
  "2-10x5": layers(shape(2, 10, 5, 1, 0.2, 600000, 19199968, 3480000)),
  "6-10x10": layers(shape(6, 10, 10, 0.75, 0.2, 15000, 302310782860, 1155000)),
  "4-1000x12": layers(shape(4, 1000, 12, 0.95, 1, 7000, 29355933696000, 1463000)),
  "25-1000x5": layers(shape(25, 1000, 5, 1, 1, 3000, 1171484375000, 732000)),
  "3-5x500": layers(shape(3, 5, 500, 1, 1, 500, 3.0239642676898464e241, 1246500)),
  "6-100x15": layers(shape(6, 100, 15, 0.5, 1, 2000, 15664996402790400, 1078000)),
  updateSignals: sbench([
    [1, 1, 1, 4 * COUNT], [1, 2, 1, 2 * COUNT], [1, 4, 1, COUNT], [1, 1000, 1, 400],
    [2, 1, 2, COUNT], [4, 1, 4, COUNT], [1000, 1, 1000, COUNT / 10],
  ]),
  createSignals,
  createComputations: sbench([
    [COUNT, 0, 1, 0], [COUNT, 1, 1, 0], [COUNT / 2, 2, 1, 0], [COUNT / 4, 4, 1, 0],
    [COUNT / 1000, 1000, 1, 0], [COUNT, 1, 2, 0], [COUNT, 1, 4, 0], [COUNT, 1, 8, 0],
    [COUNT, 1, 1000, 0],
  ]),
  "chain-1000": chain(1000, 1000),
  "chain-100000": chain(100000, 10),
  "chains-150000-by-1": chains(1),
  "chains-150000-by-1000": chains(1000),
};
