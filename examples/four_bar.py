"""A four-bar linkage of massive points, closed from its crank angle and driven at 2 rad/s."""
import numpy as np
import gaussmech as gm

angle, speed = 1.0, 2.0
tip = np.array([np.cos(angle), np.sin(angle)])
s = gm.System()
a = s.add_particle("a", mass=1.0, position=tip, velocity=speed * np.array([-tip[1], tip[0]]))
b = s.add_particle("b", mass=1.0, position=[3.0, 2.5], velocity=[0, 0])
for name, p, q, length in [("crank", s.ground([0, 0]), a, 1), ("coupler", a, b, 3), ("rocker", b, s.ground([4, 0]), 2.5)]:
    s.add_constraint(gm.Distance(name, p, q, length))
print(s.project_start(hold=["a.x", "a.y"], hold_rate=["a.x", "a.y"]))
motion = s.solve()
print(motion.reaction("coupler"))
assert s.rank_report().freedom == 1 and gm.cross_check(*s.assemble()) and s.report(motion.qdd)
