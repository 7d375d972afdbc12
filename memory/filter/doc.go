// Package filter reads filter expressions over records, after AIP-160.
//
//   - [Parse] reads and checks the text of a filter and returns an [Expression];
//     a refusal is an [Error] that says where and what would be accepted.
//   - [Expression.Bind] converts it into the conditions of one scope's index. What the
//     index does not have is decided by reading records, with a bound.
//
// Values that are not set meet no condition. Nothing here writes.
package filter
