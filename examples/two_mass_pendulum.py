"""Two masses on a straight massless rod through a pivot: one degree of freedom, Q_c in closed form."""
import numpy as np
import gaussmech as gm

s = gm.System()
inner = s.add_particle("inner", mass=1.0, position=[0.24, -0.32], velocity=[0, 0])
outer = s.add_particle("outer", mass=2.5, position=[0.66, -0.88], velocity=[0, 0])
s.add_force(gm.UniformGravity([0, -9.81]))
s.add_constraint(gm.Rod("rod", s.ground([0, 0]), inner, outer))
motion = s.solve()
print(motion)
print(motion.reaction("rod"))
turn = -9.81 * 0.6 * (1.0 * 0.4 + 2.5 * 1.1) / (1.0 * 0.4**2 + 2.5 * 1.1**2)
assert np.allclose(motion["outer"].acceleration, 1.1 * turn * np.array([0.8, 0.6]))
