//go:build race

package server

// underRace makes large tests smaller: the detector slows them tenfold.
const underRace = true
