// The adapter of @preact/signals-core: what graphs.mjs needs, in its own words.
import { signal, computed, effect, batch } from "@preact/signals-core";

let disposers = [];

export default {
  signal(initial) {
    const s = signal(initial);
    return { read: () => s.value, write: (value) => (s.value = value) };
  },
  computed(fn) {
    const c = computed(fn);
    return { read: () => c.value };
  },
  effect(fn) {
    disposers.push(effect(fn));
  },
  batch(fn) {
    batch(fn);
  },
  // Runs fn; returns what disposes all effects made in it.
  scope(fn) {
    const outer = disposers;
    const inner = (disposers = []);
    fn();
    disposers = outer;
    return () => {
      for (const dispose of inner) dispose();
    };
  },
};
