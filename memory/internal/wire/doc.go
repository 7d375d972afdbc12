// Package wire reads and writes messages in protobuf's wire encoding without a
// schema compiler: numbered fields, unknown ones skipped, absent ones zero.
// The records and the index are stored in it; FORMAT.md has the numbers.
//
// Caveats: of the wire types only varint, fixed64, fixed32 and bytes exist; a
// group is an error.
package wire
