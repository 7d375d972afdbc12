// Package natsmesh moves the frames of a mesh between processes, over NATS: a server
// inside each bridge, joined to the others by routes (Embedded), or one that runs
// elsewhere (Connect). Nothing is stored there.
//
// Frames are sealed by package mesh before they come here, so NATS, and anybody who listens on
// the way, learns only who talks to whom and how much. The routes of embedded servers ask
// for a password made of the mesh's secret.
package natsmesh
