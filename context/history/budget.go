package history

// Budget is how a window of tokens is shared out between the parts of a prompt
// and the response. Its sum is the window. The zero Budget shares nothing out.
type Budget struct {
	// Fixed is for the system prompt and the tools, FewShot for examples, Goal for
	// the goal: they are as long as they are.
	Fixed, FewShot, Goal int
	// Older is for the lines of older steps, Recent for the steps in full. What
	// other parts leave may serve recent steps.
	Older, Recent int
	// Response is for what the model answers: no part of the prompt.
	Response int
}

// React8k is the budget of a window of 8192 tokens.
func React8k() Budget {
	return Budget{Fixed: 1500, FewShot: 500, Older: DefaultSectionTokens, Recent: 2000, Goal: 200, Response: 3492}
}

// Window is the sum of all shares.
func (b Budget) Window() int {
	return b.Prompt() + b.Response
}

// Prompt is the sum of what stands in a prompt, 0 of the zero Budget.
func (b Budget) Prompt() int {
	return b.Fixed + b.FewShot + b.Older + b.Recent + b.Goal
}
