package cli

// Replaced returns the words of earlier builds and what does their job.
func Replaced() map[string]string { return replaced }
