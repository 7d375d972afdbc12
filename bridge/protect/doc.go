// Package protect keeps confined programs, and file tools, from what gives commands to others
// outside of the sandbox.
//
// The nouns:
//
//   - What these are for any workspace is the table of package commands.
//   - A [Follower] adds what a workspace's own settings say: the folder that core.hooksPath
//     names, programs and files that git's settings name, of repositories below it too, and
//     where links in it lead.
//   - A [Runner] is a sandbox's runner that passes it both, remembers which repositories
//     programs have made themselves, and has the audit say what programs were kept from.
//
// The sandbox refuses a call before anything is changed: nothing is put back or watched,
// and changes by people and other programs during a call are not affected.
//
// Caveats: which repositories were made by programs is forgotten when the server ends; they
// are then kept as any other. Repositories that lie deep among many folders are found by their
// names alone: their settings are kept, and what these name is not. A program that is not
// confined (mode off) is kept from nothing.
package protect
