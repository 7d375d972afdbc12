// Package gather finds the content of a prompt other than its history: memories, knowledge,
// tasks and content of further sources.
//
//   - An [Ask] says what a prompt wants to know, a [Source] is where something of it is
//     found, and [Found] is what a source answers.
//   - A [Gatherer] asks all sources side by side, each within its time, and returns what
//     they found as [Gathered]: injections, and which sources failed.
//
// A source answers what may change from prompt to prompt as a [Block] of [Item]s. The
// gatherer keeps the text of a session's block as it is for the time that the settings
// say, so that the provider's cache survives; what a later prompt finds beyond it stands
// in an injection of phase Runtime, under the cap of both. A record that the block shows
// and that was changed or deleted ends it at once.
//
// Caveats: kept blocks are lost with the process, and the least recently used ones when
// there are too many; then the block is made anew. A dry run keeps none. This package
// knows neither memory nor events: bridge/recall has the sources.
package gather
