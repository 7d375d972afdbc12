// Package answers deletes the answers of requests (kv.StageOnce) when they are old, in
// the background. The answers of events go with their event instead.
package answers
