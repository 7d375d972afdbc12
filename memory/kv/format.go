package kv

// Format is the version of the layout of a data directory, the number in its marker.
// memory/FORMAT.md says when it goes up and what each number brought.
const Format = 5
