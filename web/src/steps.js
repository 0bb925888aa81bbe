// steps.js - few colours for many numbers.

export const STEPS = 5;

// The colours of cells: step i has up to bounds[i] posts. Each step is as many times the last as all others are.
export function stepBounds(most) {
  const bounds = Array.from({ length: STEPS }, (_, i) => Math.round(most ** ((i + 1) / STEPS)));
  return [...new Set(bounds)];
}
