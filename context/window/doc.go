// Package window keeps a history within its window by levels of pressure. It stores
// nothing and knows no message: units come in, and a [State] says in which form each of
// them stands.
//
// The nouns:
//
//   - Pressure is the share of the window that a whole prompt takes.
//   - A [Level] is the measure that a pressure calls for: [Snip] cuts long texts, [Micro]
//     shows equal results once, [Collapse] makes one text of the middle, [Auto] keeps the
//     most valuable entries, and [Reactive] is the last one, after a provider refused a
//     prompt. [Renewal] is not a level: the window begins anew, with a handoff.
//   - A [State] records what the levels did so far. It only grows until it is undone, so
//     that a prompt between two levels begins with the one before.
//
// What it promises: a level touches no unit that is kept; what is shown of a unit is made
// of the unit as it was recorded, never of a shorter form; the same units, state and level
// give the same state.
package window
