// Package sets reads the collections that memory is measured on, all in one shape: talks of
// turns in order, and questions with the turns, or the sessions, that answer them.
//
// The collections of others lie in a folder of the caller's and are never copied into the
// project. Each reader repairs the slips of its collection and says which.
package sets
