package assemble

import "github.com/loom-bridge/loom-bridge/memory/kv"

// ForgetHistories drops what is kept of histories, and nothing else, as a server has it that
// keeps none.
func (a *Assembler) ForgetHistories() { a.folds.Forget(func(kv.Scope) bool { return true }) }
