// The adapter of alien-signals: what graphs.mjs needs, in its own words.
import { signal, computed, effect, effectScope, startBatch, endBatch } from "alien-signals";

export default {
  signal(initial) {
    const s = signal(initial);
    return { read: () => s(), write: (value) => s(value) };
  },
  computed(fn) {
    const c = computed(fn);
    return { read: () => c() };
  },
  effect(fn) {
    effect(fn);
  },
  batch(fn) {
    startBatch();
    fn();
    endBatch();
  },
  // Runs fn; returns what disposes all effects made in it.
  scope(fn) {
    return effectScope(fn);
  },
};
