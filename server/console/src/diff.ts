// Differences of texts.

export type Piece = ["same" | "gone" | "new", string];

/** Compares two lists; of long ones whose middles differ, the middles count as exchanged. */
export function compare(a: string[], b: string[]): Piece[] {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  const x = a.slice(head, a.length - tail);
  const y = b.slice(head, b.length - tail);
  const all = (kind: Piece[0], texts: string[]) => texts.map((t): Piece => [kind, t]);
  const out = all("same", a.slice(0, head));
  if (x.length * y.length > 1e6) {
    return out.concat(all("gone", x), all("new", y), all("same", a.slice(a.length - tail)));
  } else {
    // length[i][j] is that of the longest common part of x from i and y from j.
    const width = y.length + 1;
    const length = new Uint16Array((x.length + 1) * width);
    for (let i = x.length - 1; i >= 0; i--) {
      for (let j = y.length - 1; j >= 0; j--) {
        length[i * width + j] = x[i] === y[j] ? length[(i + 1) * width + j + 1]! + 1 : Math.max(length[(i + 1) * width + j]!, length[i * width + j + 1]!);
      }
    }
    let i = 0;
    let j = 0;
    while (i < x.length || j < y.length) {
      if (i < x.length && j < y.length && x[i] === y[j]) {
        out.push(["same", x[i++]!]);
        j++;
      } else if (j >= y.length || (i < x.length && length[(i + 1) * width + j]! >= length[i * width + j + 1]!)) out.push(["gone", x[i++]!]);
      else out.push(["new", y[j++]!]);
    }
  }
  return out.concat(all("same", a.slice(a.length - tail)));
}

function joined(pieces: Piece[]): Piece[] {
  const out: Piece[] = [];
  for (const [kind, text] of pieces) {
    const last = out.at(-1);
    if (last?.[0] === kind) last[1] += text;
    else out.push([kind, text]);
  }
  return out;
}

/** How two texts differ, by words. */
export const byWords = (a: string, b: string): Piece[] => joined(compare(a.match(/\s+|[^\s]+/g) ?? [], b.match(/\s+|[^\s]+/g) ?? []));

/** How two texts differ, by lines. */
export const byLines = (a: string, b: string): Piece[] => joined(compare(a.split(/(?<=\n)/), b.split(/(?<=\n)/)));
