package kernel

// HotCount is how many executions are hot.
func (rt *Runtime) HotCount() int {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return len(rt.hot)
}
