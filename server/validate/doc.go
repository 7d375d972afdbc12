// Package validate says what a request may hold.
//
// [Request] checks one: each field by its rule in the table of rules, then what fields
// say together. It returns nil, or a [*RequestError] with all rules that are broken, at
// most maxViolations of them. [Counts] is how much of everything that can be counted a
// request may hold; that is looked at before it is decoded.
//
// A rule here is one of form: sizes, numbers, names, which fields go together. What a
// value means is for the domain packages, which check their own input again. Each
// limit stands in the field's comment in the protos, and a test compares them.
package validate
