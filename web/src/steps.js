// steps.js - maps numbers to a few colours.

export const STEPS = 5;

// The bounds of the colours: step i is for up to bounds[i] posts. The bounds form a geometric sequence.
export function stepBounds(most) {
  const bounds = Array.from({ length: STEPS }, (_, i) => Math.round(most ** ((i + 1) / STEPS)));
  return [...new Set(bounds)];
}
