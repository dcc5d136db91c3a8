//go:build !race

package agent

// underRace makes large tests smaller: the detector slows them tenfold.
const underRace = false
