// Package native holds the tools that ship with the bridge: reading, writing,
// listing, searching, deleting and looking at files, running programs, and asking and
// filling memory.
//
// Programs run in the workspace, in a sandbox. Which ones may run is a list of names;
// what they may do is the sandbox's. What a command writes to stdout is the body of its
// result, passed on while it runs.
//
// [Register] adds them to a registry. The memory tools read the tiers of the agent
// that calls, for its session unless another one is named, and answer with layer,
// description, count and items. The file tools work in the workspace of the agent
// that calls, an [os.Root], and nowhere else:
//
//   - A path is walked folder by folder, each one opened and compared with what
//     was looked at before, so that a link put in its place meanwhile is
//     noticed. "..", absolute paths and links that lead outside are refused
//     with "Permission denied: Path traversal detected". An absolute path
//     inside the workspace is as good as a relative one.
//   - The store's own directory is refused by any name, and lists and searches
//     do not show it: it is known by its identity on disk, not by its spelling.
//   - Only regular files are opened. A pipe or a device neither hangs a call
//     nor is touched.
//   - A file is replaced in one step: a reader finds the old or the new
//     content whole. Appending is one write at the end of the file, undone when
//     it can't be finished.
//
// What prompts leave out is read back with the same fs:read_file: a path that no
// file has may name a stored result, a step or a message. One rule says who
// wins where both are there: below workspace/outputs and workspace/history, and
// under the bare id of a step or message (step_001, message_001), it is what is
// stored; under every other name (outputs/…, history/…, ./step_001, a ref) it is
// the file. So a workspace that someone else filled can't pass a file for what
// the agent did, and every file can be read.
//
// Caveats: "a/.." is "." here, whatever a is, as in [path.Clean]. A process that ends in
// the middle of a replacement leaves the new content next to the file, under a name that
// begins with ".loom-tmp-". Hard links are not looked through.
package native
