// Package grants says which agents may read, write or administer a memory that several
// share: a space, or a person's.
//
// A [Store] makes spaces, and grants and revokes access to agents by pattern. [Store.Need]
// answers whether an agent has the access that a call needs, with a [Permit]: it is checked
// again in the commit of a change ([Permit.Check]), and ends what goes on for longer as soon
// as the access is lost ([Permit.Hold]). A refusal is a [DeniedError], the same for a space
// that is not there.
//
// What is granted lies in the keyspace system of the memory's own scope. It is remembered
// for one sequence of that, so that a call asks the engine for sequences alone. An agent's
// own memory has no grants: nothing is read for it.
package grants
