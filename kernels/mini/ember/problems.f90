!> The problems: their initial states, and their exact solutions as averages over zones.
!>
!> `new_problem` creates the one that the parameters select; those without a separate file have a gamma law gas. `fill` sets
!> the conserved variables and species of a leaf, of any level; `exact` of sod and wave returns averages over a box, from which
!> their states are set. Everything is the same for any tree: the totals in the domain are exact on each level.
!>
!> sedov: the energy E as heat in a ball around the centre (in 2-d a disc, for an explosion on a line), in a uniform gas.
!>   The ball is made of cells, `cells_per_zone` in each direction of a finest zone: those whose centre is in it. A zone,
!>   of any level, gets the share of E of its cells among all in the ball, so that the total is E to rounding on any
!>   mesh. Cells are counted, and their distances from the centre are integers: mirrored zones have equal
!>   bits. With the octant, the domain has the share of E inside it. Its shock is at R = (E t^2/(alpha rho))^(1/(j + 2)), where
!>   j is 3, or 2 for an explosion on a line; L. I. Sedov, Similarity and dimensional methods in mechanics (1959), and J. R.
!>   Kamm and F. X. Timmes, LA-UR-07-2849 (2007), give alpha.
!> sod: two gases at rest, separated by the plane in the middle of the domain (G. A. Sod, J. Comput. Phys. 27, 1978). wave:
!> density 1 + A sin(k (x - v t)) in gas of pressure 1 that moves diagonally through the domain, which is one
!>   wavelength long in each direction.
module ember_problems
    use ember_eos, only: eos_t
    use ember_flame_front, only: flame_problem_t
    use ember_helmholtz_eos, only: helmholtz_eos_t
    use ember_mesh, only: mesh_t, n_conserved, v_dens, v_ener
    use ember_parameters, only: parameters_t
    use ember_problem, only: known_problem_t, problem_t, put
    use ember_snia2d, only: snia2d_problem_t
    use pw_error, only: error_t, exit_usage
    use pw_kinds, only: i8, r8
    use pw_text, only: to_text
    use riemann_exact, only: gas_t, riemann_t
    implicit none
    private

    real(r8), parameter :: pi = acos(-1.0_r8)
    integer, parameter :: cells_per_zone = 8     ! of the ball of sedov, in each direction
    !> Of polynomials in ln(gamma - 1) for j = 2 and 3: ln(alpha (gamma^2 - 1)) to 7e-4 for gamma from 1.05 to 5.
    real(r8), parameter :: least_gamma = 1.05_r8, greatest_gamma = 5.0_r8
    real(r8), parameter :: alpha_fit(0:4, 2:3) = reshape( &
                           [0.05403126_r8, 0.12905656_r8, 0.00547772_r8, -0.00417996_r8, -0.00041797_r8, &
                            -0.06651227_r8, 0.16753401_r8, 0.02037237_r8, -0.00160412_r8, -0.000253_r8], [5, 2])

    type, extends(problem_t), public :: sedov_problem_t
        real(r8) :: energy = 1.0_r8              !< of the whole explosion
        real(r8) :: density = 1.0_r8             !< of the surrounding gas
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
    contains
        procedure :: fill => fill_sedov
        procedure :: shock_radius
        procedure :: is_similar
        procedure, private :: weight
    end type sedov_problem_t

    type, extends(known_problem_t), public :: sod_problem_t
        type(riemann_t) :: tube
        integer :: direction = 1
    contains
        procedure :: exact => sod_averages
    end type sod_problem_t

    type, extends(known_problem_t), public :: wave_problem_t
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

    !> Centre and ball of the explosion.
    subroutine start_sedov(self, given, error)
        type(sedov_problem_t), intent(inout) :: self
        type(parameters_t), intent(in) :: given
        type(error_t), intent(inout) :: error
        real(r8) :: width(3), radius, half_cells
        integer(i8) :: n_cells
        integer :: i

        self%energy = given%sedov_energy
        self%density = given%sedov_density
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
        self%ball = radius
        self%reach = (2.0_r8*cells_per_zone*radius/width(1))**2
        self%whole = self%weight(self%first, self%last)
    end subroutine start_sedov

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
                    if (all(first <= self%last .and. last >= self%first)) heat = heat + self%share*self%energy &
                        *(real(self%weight(first, last), r8)/real(self%whole, r8))/volume(i)
                    state = 0.0_r8
                    state(v_dens) = self%density
                    state(v_ener) = heat
                    call put(mesh, leaf, [i, j, k], state)
                end do
            end do
        end do
    end subroutine fill_sedov

    !> The shock of an explosion in a point and in gas without pressure.
    pure real(r8) function shock_radius(self, time) result(radius)
        class(sedov_problem_t), intent(in) :: self
        real(r8), intent(in) :: time
        real(r8) :: alpha
        integer :: j, k

        j = merge(3, self%dims, self%cylindrical)
        alpha = exp(sum([(alpha_fit(k, j)*log(self%gamma - 1.0_r8)**k, k=0, 4)]))/(self%gamma**2 - 1.0_r8)
        radius = (self%energy*time**2/(alpha*self%density))**(1.0_r8/(j + 2))
    end function shock_radius

    !> Whether `shock_radius` is that of this explosion: the shock is at least `far` times the radius of the ball away, strong, and
    !> inside the domain.
    pure logical function is_similar(self, time, far)
        class(sedov_problem_t), intent(in) :: self
        real(r8), intent(in) :: time, far
        real(r8), parameter :: strong = 1.0e3_r8   ! pressure behind the shock, in units of that ahead of it
        real(r8) :: radius, speed

        radius = self%shock_radius(time)
        is_similar = radius >= far*self%ball .and. self%gamma >= least_gamma .and. self%gamma <= greatest_gamma
        if (.not. is_similar) return
        speed = 2.0_r8*radius/(merge(5, self%dims + 2, self%cylindrical)*time)
        associate (d => self%dims)
            is_similar = all(self%centre(:d) + radius <= self%lower(:d) + self%length(:d)) &
                         .and. all(self%centre(:d) - radius >= self%lower(:d) .or. self%middle(:d) == 0) &
                         .and. self%density*speed**2 > strong*self%pressure
        end associate
    end function is_similar

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
