"""A bead on the parabola z = r²/2, which turns about its axis: it floats where ω² = g."""
import numpy as np
import gaussmech as gm

g, omega = 9.81, np.sqrt(9.81)
s = gm.System()
bead = s.add_particle("bead", mass=0.3, position=[0.5, 0, 0.125], velocity=[0, 0.5 * omega, 0])
s.add_force(gm.UniformGravity([0, 0, -g]))
s.add_constraint(gm.PointOnSurface("bowl", bead, lambda r: r[2] - 0.5 * (r[0] ** 2 + r[1] ** 2)))
s.add_constraint(gm.PointOnSurface("turning plane", bead, lambda t, r: r[1] * np.cos(omega * t) - r[0] * np.sin(omega * t)))
motion = s.solve()
print(motion)
assert np.allclose(motion["bead"].acceleration, [-g * 0.5, 0, 0], atol=1e-12)
