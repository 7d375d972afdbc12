// Package guard keeps what strangers wrote from passing for a prompt's own words.
//
//   - [Text] is a text of memory, knowledge, tools or other agents that stands in a message
//     next to the prompt's own lines: none of its lines looks like one of those, and it
//     closes no tag.
//   - [Output] is the result of a call in its own message: in it only what folding
//     writes is recognized, so that files and logs stay as they are.
//   - [Tags] is a text that opens and closes none of some tags.
//
// All of it is pure, takes time in proportion to the text, and changes nothing twice.
package guard
