// Package convert converts requests into values of the domain, and values of the domain
// into answers.
//
// A function has the name of what it makes: [Query] reads a query out of a request,
// [Step] writes a step of the log as a message. Requests have passed package validate
// before; what can still be wrong is returned as a [*validate.RequestError].
//
// JSON travels as protobuf's own types or as exact text, as the caller wishes; what
// those types can't hold travels as text whatever it wishes. Numbers are kept within
// their fields, and text from outside is made valid UTF-8.
package convert
