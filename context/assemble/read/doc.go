// Package read loads what the prompt of a session is made of, as of one moment.
//
//   - A [Sessions] is where sessions are read from: one for a server.
//   - A [Moment] is a session as it is now, and belongs to one prompt. Its [State] is the
//     stored data other than the log's entries; Groups, Steps and Originals read the
//     entries.
//   - [End] is what the last entries say: the newest message of the user, and failures.
//
// A moment only reads. More than a prompt may hold of texts ends the reading, and only few
// moments hold much text at a time; others that need to wait.
package read
