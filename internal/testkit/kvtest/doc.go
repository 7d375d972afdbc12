// Package kvtest is the one suite that every engine of the kv contract passes.
//
//   - [Run] checks the contract on engines that a factory makes empty, and
//     compares random operations with the reference engine.
//   - [RunReopen] adds what an engine that keeps data owes beyond that.
//   - [Benchmark] measures an engine.
//   - [Faulty] wraps an engine so that chosen calls fail, for the tests of what
//     stands above.
//
// A new engine's test file calls these and adds what is its own.
package kvtest
