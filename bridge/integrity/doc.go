// Package integrity reads a store back and reports damage.
//
// The nouns:
//
//   - An entry is a key with its value. [Entries] reads the entries of all owners and has
//     each checked by the package that wrote it.
//   - A [Finding] is something that is damaged, or does not agree with the rest.
//   - A [Scrub] reads everything back again and again while the store serves: first
//     the files, byte by byte, then the entries.
//
// Caveats: comparing an index of words with its records needs memory in proportion to
// them, so a scrub leaves that out; [Options.Memory] asks for it. What a scrub finds
// it notes in the store's kv.Health.
package integrity
