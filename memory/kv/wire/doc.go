// Package wire writes and reads the numbered fields of stored values: protobuf's
// wire encoding without a schema and without generated code. Whoever stores
// something owns its field numbers; FORMAT.md in package memory has them all.
//
// The nouns:
//
//   - A message is a stored value, or a part of one, that is fields and nothing
//     else. No bytes at all are a message without fields.
//   - A [Field] is a number from 1 up and what it holds: an unsigned integer or
//     bytes. [Fields] yields the fields of a message; the Append functions add one.
//   - Text is a field of bytes; an item is a field that is written even if it is empty,
//     because it repeats or its presence means something.
//
// What the formats count on:
//
//   - A zero or empty value is left out, and a reader takes an absent field as
//     zero or empty. [AppendNumber], [AppendItem] and [AppendFixed64] write it
//     all the same, and each says so.
//   - A field may come again. Whether it is one more item then, or takes the
//     place of the one before, is the reader's to say.
//   - A reader ignores numbers it does not know, so that formats can grow.
//   - A signed integer is a zigzag varint ([AppendInt]), and so is a time
//     ([AppendTime]): microseconds since 1970, in UTC when it is read. An unset
//     time is left out; 1970 itself is not. A format that keeps its times in
//     another way does so itself.
//
// Bytes that are no message give [ErrMalformed]. The reader of a stored value
// wraps it in its package's own error, which names the value.
//
// Caveats: whether a number came as an integer or as bytes is not checked. One
// read as the other is zero or empty, as if it were absent. What is read aliases
// the message; clone what has to outlive it. Groups, which nothing here writes,
// are passed over. All functions are safe for concurrent use.
package wire
