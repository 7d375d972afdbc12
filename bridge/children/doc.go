// Package children lets agents have children: agents with their own goal, limits, session
// and workspace.
//
//   - A [Child] is what is kept of one: who its parent is, what it may do, and in the end
//     its [Result]. A [Store] reads them.
//   - A [Spawner] makes children ([Spawner.Spawn]), takes their results
//     ([Spawner.Complete]) and waits for them ([Spawner.Wait]). A child that does not
//     return in time, or that was attached and does not come back, gets a result that says
//     so.
//   - [Workspaces] gives each child a folder that is closed to every other agent.
//
// A child is there, with its parent's step, its session's first message and its limits,
// or it is not: all of it is one commit. It has exactly one result, which is one commit
// with the step of its parent. What crosses to a child is its goal and the blobs that were
// granted to it, and back its result, and the blobs granted with that.
//
// Caveats: the events about a child come after the commit, once more after a
// restart where it is not certain that they came. A program that runs in the background
// of a shared workspace sees the folders of children that are spawned after it began.
package children
