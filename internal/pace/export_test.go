package pace

// Window returns how many requests may be under way now.
func (g *Gate) Window() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.window
}
