// Package jobs runs programs in the background of a session: a call starts one, further
// calls list them, read what they print, and stop them.
//
// A [Jobs] has the jobs of all agents. Each belongs to the [JobOwner] that started it, an
// agent's session, and no other sees it. It ends by itself, when it is stopped, with its
// session, or with the server: whatever it started ends with it, and nothing of it is left
// when the server is killed.
//
// What a job prints is kept on disk, in a file that has no name, and of that the newest
// bytes: a job may print for days. A job that has ended stays readable until its session
// ends, or newer ones have taken its place.
//
// Tenants and agents share the number of jobs that run.
package jobs
