package lexical

// SetMergeCommitBytes makes merges take many commits without much data.
func (x *Index) SetMergeCommitBytes(n int) { x.mergeCommitBytes = n }
