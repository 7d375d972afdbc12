// Package registry is the registry of the servers that have one store together.
//
// Each server (a bridge) has an id for as long as its process runs, and an epoch, which is
// another one each time it is registered. Its registration is a key of the store, and its
// lease another one, which it renews by the store's clock every [RenewEvery]; clocks of
// machines do not matter. A bridge whose lease has run out is taken for dead by any other:
// its registration goes, and with it its fence ([kv.Shared]), so that it writes nothing more
// under that epoch, whatever it believes. If it lives it finds out, and registers under a new
// epoch.
//
// After a time in which the store could not be reached every lease has run out. So a bridge
// takes no server for dead before it has reached the store without a break for [Grace].
//
// A nil *[Registry] is that of a store which one process has for itself: there are no
// others, and none ever ended.
package registry
