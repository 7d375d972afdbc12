// Package tools is the list of what an agent may call, and the form every call
// has.
//
// The nouns:
//
//   - A [Descriptor] says what a tool is called, what it does and which
//     arguments it takes, as a JSON Schema.
//   - A [Func] does the work. It gets an [Input] and gives an [Output] or fails
//     with an [Error], which carries a [Code] that programs switch on.
//   - A [Tool] is both together, as it stands in a [Registry].
//   - A [Catalogue] is a registry and what each [Supplier] adds, such as the
//     agents: all ask it which tool a name means and which tools there are.
//   - [ParseArguments] reads the JSON a model wrote; [Tool.Check] compares it
//     with the schema, and an [ArgumentsError] lists all faults at once,
//     so that the model can correct itself.
//
// Caveats: the package runs nothing by itself and records nothing. Deadlines,
// panics, the log and the offloading of large results belong to bridge/hand.
// A schema can't refer to anything outside itself: neither files nor the
// network are read to compile one.
package tools
