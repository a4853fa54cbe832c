!> The problems: their initial states, and their exact solutions as averages over zones.
!>
!> `new_problem` creates the one that the parameters select; those without a separate file have a gamma law gas. `fill` sets
!> the conserved variables and species of a leaf, of any level; `exact` returns averages over a box, from which the
!> states of sod and wave are set too. Everything is the same for any tree: the totals in the domain are exact on each
!> level.
!>
!> sedov: the energy E as heat in a ball around the centre (in 2-d a disc, for an explosion on a line), in a uniform gas.
!>   The ball is made of cells, `cells_per_zone` in each direction of a finest zone: those whose centre is in it. A zone,
!>   of any level, gets the share of E of its cells among all in the ball, so that the total is E to rounding on any
!>   mesh. Cells are counted, and their distances from the centre are integers: mirrored zones have equal
!>   bits. With the octant, the domain has the share of E inside it.
!> sod: two gases at rest, separated by the plane in the middle of the domain (G. A. Sod, J. Comput. Phys. 27, 1978). wave:
!> density 1 + A sin(k (x - v t)) in gas of pressure 1 that moves diagonally through the domain, which is one
!>   wavelength long in each direction.
module ember_problems
    use ember_eos, only: eos_t
    use ember_flame_front, only: flame_problem_t
    use ember_helmholtz_eos, only: helmholtz_eos_t
    use ember_mesh, only: mesh_t, n_conserved, v_dens, v_ener
    use ember_parameters, only: parameters_t
    use ember_problem, only: problem_t, put
    use ember_snia2d, only: snia2d_problem_t
    use pw_error, only: error_t, exit_usage
    use pw_kinds, only: i8, r8
    use pw_text, only: to_text
    use riemann_exact, only: gas_t, riemann_t
    use sedov_exact, only: sedov_t
    implicit none
    private

    real(r8), parameter :: pi = acos(-1.0_r8)
    integer, parameter :: cells_per_zone = 8     ! of the ball of sedov, in each direction
    integer, parameter :: table_size = 8192      ! of the explosion's profile

    type, extends(problem_t), public :: sedov_problem_t
        type(sedov_t) :: blast
        real(r8) :: centre(3) = 0.0_r8
        real(r8) :: share = 1.0_r8               !< of the energy inside the domain
        real(r8) :: pressure = 0.0_r8            !< of the surrounding gas
        real(r8), private :: ball = 0.0_r8       ! radius of the ball that holds the energy first
        integer, private :: highest_level = 0
        integer(i8), private :: middle(3) = 0    ! of the explosion: in half cells from the lower end of the domain
        integer(i8), private :: first(3) = 0, last(3) = 0   ! cells around the ball, from 0
        real(r8), private :: stretch(3) = 1.0_r8 ! of cells, squared, relative to the first direction
        real(r8), private :: reach = 0.0_r8      ! (2 radius)^2, in cells
        integer(i8), private :: whole = 0        ! weight of all cells in the ball
        !> The profile at r/R = 0 ... 1 in even steps: averages over all zones of a mesh take it millions of times.
        !> Density and pressure, and velocity by radius, in units of those ahead of the shock, rho D^2 and D/R.
        real(r8), allocatable, private :: table(:, :)
    contains
        procedure :: exact => sedov_averages
        procedure :: fill => fill_sedov
        procedure :: is_similar
        procedure, private :: weight
    end type sedov_problem_t

    type, extends(problem_t), public :: sod_problem_t
        type(riemann_t) :: tube
        integer :: direction = 1
    contains
        procedure :: exact => sod_averages
    end type sod_problem_t

    type, extends(problem_t), public :: wave_problem_t
        real(r8) :: amplitude = 0.2_r8
        real(r8) :: velocity(3) = 0.0_r8
    contains
        procedure :: exact => wave_averages
    end type wave_problem_t

    public :: new_problem, problem_t

contains

    !> Create the problem that `given` selects, of matter with the equation of state `eos`, which snia2d evaluates. Errors:
    !> those of the exact solutions and of the equation of state; exit_usage if the ball of sedov does not fit into the
    !> domain.
    subroutine new_problem(given, problem, error, eos)
        type(parameters_t), intent(in) :: given
        class(problem_t), allocatable, intent(out) :: problem
        type(error_t), intent(inout) :: error
        class(eos_t), intent(in), optional :: eos
        type(sedov_problem_t), allocatable :: sedov
        type(sod_problem_t), allocatable :: sod
        type(wave_problem_t), allocatable :: wave
        type(flame_problem_t), allocatable :: flame
        type(snia2d_problem_t), allocatable :: supernova

        select case (given%problem)
        case ('sedov')
            allocate (sedov)
            call sedov%describe(given)
            call start_sedov(sedov, given, error)
            call move_alloc(sedov, problem)
        case ('sod')
            allocate (sod)
            call sod%describe(given)
            sod%direction = given%sod_direction
            call sod%tube%start(given%gamma, gas_t(1.0_r8, 0.0_r8, 1.0_r8), gas_t(0.125_r8, 0.0_r8, 0.1_r8), error)
            call move_alloc(sod, problem)
        case ('flame')
            allocate (flame)
            call flame%start(given)
            call move_alloc(flame, problem)
        case ('snia2d')
            allocate (supernova)
            if (present(eos)) then
                select type (eos)
                type is (helmholtz_eos_t)
                    call supernova%start(given, eos, error)
                end select
            end if
            call move_alloc(supernova, problem)
        case default
            allocate (wave)
            call wave%describe(given)
            wave%amplitude = given%wave_amplitude
            wave%velocity(:given%dims) = given%wave_speed*wave%length(:given%dims)
            call move_alloc(wave, problem)
        end select
    end subroutine new_problem

    !> Centre, ball and exact solution of the explosion.
    subroutine start_sedov(self, given, error)
        type(sedov_problem_t), intent(inout) :: self
        type(parameters_t), intent(in) :: given
        type(error_t), intent(inout) :: error
        real(r8) :: width(3), radius, half_cells
        integer(i8) :: n_cells
        integer :: i

        call self%blast%start(merge(3, given%dims, self%cylindrical), given%gamma, given%sedov_energy, given%sedov_density, error)
        if (error%failed()) return
        self%pressure = given%sedov_pressure
        self%highest_level = given%highest_level
        width = self%length/(given%roots*given%block_size*2.0_r8**given%highest_level)
        radius = given%sedov_radius*maxval(width(:given%dims))
        do i = 1, given%dims
            ! In cells of this direction; the widths of cubes differ by rounding.
            self%stretch(i) = (width(i)/width(1))**2
            if (abs(self%stretch(i) - 1.0_r8) < 1.0e-12_r8) self%stretch(i) = 1.0_r8
            half_cells = 2.0_r8*cells_per_zone*radius/width(i)
            n_cells = given%roots(i)*given%block_size*2_i8**given%highest_level*cells_per_zone
            self%middle(i) = n_cells
            if (self%cylindrical .and. i == 1) then
                self%middle(i) = 0
            else if (given%octant) then
                self%middle(i) = 0
                self%share = 0.5_r8*self%share
            end if
            self%centre(i) = given%lower(i) + 0.5_r8*self%middle(i)/n_cells*self%length(i)
            if (self%middle(i) + half_cells > 2*n_cells .or. (self%middle(i) > 0 .and. half_cells > self%middle(i))) then
                call error%raise(exit_usage, 'the ball of the explosion, '//to_text(given%sedov_radius, 'f0.1')//' zones in '// &
                                 'radius, does not fit into the domain', 'new_problem', 'use a smaller --sedov-radius')
                return
            end if
            self%first(i) = max(0_i8, int((self%middle(i) - half_cells)/2.0_r8, i8) - 1)
            self%last(i) = min(n_cells - 1, int((self%middle(i) + half_cells)/2.0_r8, i8) + 1)
        end do
        call tabulate(self)
        self%ball = radius
        self%reach = (2.0_r8*cells_per_zone*radius/width(1))**2
        self%whole = self%weight(self%first, self%last)
    end subroutine start_sedov

    subroutine tabulate(self)
        type(sedov_problem_t), intent(inout) :: self
        real(r8) :: radius, speed, lambda, dens, velocity, pres
        integer :: k

        allocate (self%table(3, 0:table_size))
        radius = self%blast%shock_radius(1.0_r8)
        speed = self%blast%shock_speed(1.0_r8)
        do k = 0, table_size
            ! Velocity divided by radius has a limit in the centre; and the shock's radius must not round to outside.
            lambda = min(max(real(k, r8)/table_size, 1.0e-9_r8), 1.0_r8 - 1.0e-14_r8)
            call self%blast%profile(lambda*radius, 1.0_r8, dens, velocity, pres)
            self%table(:, k) = [dens/self%blast%density, velocity/(lambda*speed), pres/(self%blast%density*speed**2)]
        end do
    end subroutine tabulate

    !> Weight of the ball's cells from `first` to `last`: their number, in cylindrical geometry times their radius in half cells.
    pure integer(i8) function weight(self, first, last)
        class(sedov_problem_t), intent(in) :: self
        integer(i8), intent(in) :: first(3), last(3)
        integer(i8) :: a(3), b(3), i, j, k
        real(r8) :: y, z

        a = max(first, self%first)
        b = min(last, self%last)
        weight = 0
        do k = a(3), b(3)
            z = 0.0_r8
            if (self%dims == 3) z = real(2*k + 1 - self%middle(3), r8)**2*self%stretch(3)
            do j = a(2), b(2)
                y = real(2*j + 1 - self%middle(2), r8)**2*self%stretch(2)
                do i = a(1), b(1)
                    ! Integers if zones are cubes: the order of the sum does not matter.
                    if (real(2*i + 1 - self%middle(1), r8)**2 + y + z > self%reach) cycle
                    weight = weight + merge(2*i + 1, 1_i8, self%cylindrical)
                end do
            end do
        end do
    end function weight

    !> As `fill`.
    subroutine fill_sedov(self, mesh, leaf)
        class(sedov_problem_t), intent(in) :: self
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: leaf
        real(r8) :: state(n_conserved), heat, volume(mesh%first:mesh%last)
        integer(i8) :: cells, place(3), first(3), last(3)
        integer :: i, j, k, zones(3)

        zones = mesh%zones()
        volume = mesh%zone_volumes(leaf)
        if (self%cylindrical) volume = 2.0_r8*pi*volume
        cells = cells_per_zone*2_i8**(self%highest_level - mesh%tree%level(leaf))
        place = int(mesh%tree%place(:, leaf), i8)*zones
        do k = 1, zones(3)
            do j = 1, zones(2)
                do i = 1, zones(1)
                    first = (place + [i, j, k] - 1)*cells
                    last = first + cells - 1
                    if (self%dims == 2) first(3) = 0
                    if (self%dims == 2) last(3) = 0
                    heat = self%pressure/(self%gamma - 1.0_r8)
                    if (all(first <= self%last .and. last >= self%first)) heat = heat + self%share*self%blast%energy &
                        *(real(self%weight(first, last), r8)/real(self%whole, r8))/volume(i)
                    state = 0.0_r8
                    state(v_dens) = self%blast%density
                    state(v_ener) = heat
                    call put(mesh, leaf, [i, j, k], state)
                end do
            end do
        end do
    end subroutine fill_sedov

    !> Whether the exact solution, which begins in a point and in gas without pressure, is that of this explosion: the shock
    !> is at least `far` times the radius of the ball away, strong, and inside the domain.
    pure logical function is_similar(self, time, far)
        class(sedov_problem_t), intent(in) :: self
        real(r8), intent(in) :: time, far
        real(r8), parameter :: strong = 1.0e3_r8   ! pressure behind the shock, in units of that ahead of it
        real(r8) :: radius

        radius = self%blast%shock_radius(time)
        is_similar = radius >= far*self%ball
        if (.not. is_similar) return
        associate (d => self%dims)
            is_similar = all(self%centre(:d) + radius <= self%lower(:d) + self%length(:d)) &
                         .and. all(self%centre(:d) - radius >= self%lower(:d) .or. self%middle(:d) == 0) &
                         .and. self%blast%density*self%blast%shock_speed(time)**2 > strong*self%pressure
        end associate
    end function is_similar

    !> Averages over points of the box, more of them where the shock is near; accurate to 1e-6 at each point.
    pure subroutine sedov_averages(self, time, lower, upper, dens, velocity, pres)
        class(sedov_problem_t), intent(in) :: self
        real(r8), intent(in) :: time, lower(3), upper(3)
        real(r8), intent(out) :: dens, velocity(3), pres
        integer, parameter :: few = 2, many = 6
        real(r8) :: offset(3), width(3), centre(3), radius, shock, speed, place, there(3), weight, weights
        integer :: n(3), i, j, k, row

        shock = self%blast%shock_radius(time)
        speed = 0.0_r8
        if (time > 0.0_r8) speed = self%blast%shock_speed(time)
        width = 0.0_r8
        centre = 0.0_r8
        width(:self%dims) = upper(:self%dims) - lower(:self%dims)
        centre(:self%dims) = 0.5_r8*(upper(:self%dims) + lower(:self%dims)) - self%centre(:self%dims)
        n = few
        if (abs(norm2(centre) - shock) < 2.0_r8*norm2(width)) n = many
        if (self%dims == 2) n(3) = 1
        dens = 0.0_r8
        velocity = 0.0_r8
        pres = 0.0_r8
        weights = 0.0_r8
        do k = 1, n(3)
            do j = 1, n(2)
                do i = 1, n(1)
                    offset = centre + width*(real([2*i - 1, 2*j - 1, 2*k - 1], r8)/(2*n) - 0.5_r8)
                    radius = norm2(offset)
                    there = [1.0_r8, 0.0_r8, 0.0_r8]
                    if (radius <= shock .and. shock > 0.0_r8) then
                        place = radius/shock*table_size
                        row = min(int(place), table_size - 1)
                        place = place - row
                        there = (1.0_r8 - place)*self%table(:, row) + place*self%table(:, row + 1)
                    end if
                    weight = 1.0_r8
                    if (self%cylindrical) weight = offset(1)
                    weights = weights + weight
                    dens = dens + weight*there(1)
                    velocity = velocity + weight*there(1)*there(2)*offset
                    pres = pres + weight*max(there(3)*self%blast%density*speed**2, self%pressure)
                end do
            end do
        end do
        if (dens > 0.0_r8 .and. shock > 0.0_r8) velocity = velocity/dens*(speed/shock)
        dens = dens/weights*self%blast%density
        pres = pres/weights
    end subroutine sedov_averages

    pure subroutine sod_averages(self, time, lower, upper, dens, velocity, pres)
        class(sod_problem_t), intent(in) :: self
        real(r8), intent(in) :: time, lower(3), upper(3)
        real(r8), intent(out) :: dens, velocity(3), pres
        real(r8) :: from, to, share

        associate (d => self%direction)
            from = lower(d) - (self%lower(d) + 0.5_r8*self%length(d))
            to = upper(d) - (self%lower(d) + 0.5_r8*self%length(d))
            velocity = 0.0_r8
            if (time > 0.0_r8) then
                call self%tube%average(from/time, to/time, dens, velocity(d), pres)
                velocity(d) = velocity(d)/dens
            else
                share = min(max(-from/(to - from), 0.0_r8), 1.0_r8)
                ! Planes of zones and that of the problem differ by rounding.
                if (abs(share - anint(share)) < 1.0e-9_r8) share = anint(share)
                dens = share*self%tube%left%dens + (1.0_r8 - share)*self%tube%right%dens
                pres = share*self%tube%left%pres + (1.0_r8 - share)*self%tube%right%pres
            end if
        end associate
    end subroutine sod_averages

    !> The mean of a sine over a box is that in its centre times sin(x)/x of half its width in each direction.
    pure subroutine wave_averages(self, time, lower, upper, dens, velocity, pres)
        class(wave_problem_t), intent(in) :: self
        real(r8), intent(in) :: time, lower(3), upper(3)
        real(r8), intent(out) :: dens, velocity(3), pres
        real(r8) :: phase, damping, half
        integer :: i

        phase = 0.0_r8
        damping = 1.0_r8
        do i = 1, self%dims
            phase = phase + (0.5_r8*(lower(i) + upper(i)) - self%lower(i) - self%velocity(i)*time)/self%length(i)
            half = pi*(upper(i) - lower(i))/self%length(i)
            if (half > 0.0_r8) damping = damping*sin(half)/half
        end do
        dens = 1.0_r8 + self%amplitude*damping*sin(2.0_r8*pi*(phase - anint(phase)))
        velocity = self%velocity
        pres = 1.0_r8
    end subroutine wave_averages

end module ember_problems
