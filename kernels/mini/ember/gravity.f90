!> The gravity of matter layered around the origin, in 2-d cylindrical geometry: that of its spherical average.
!>
!> Shells half as thick as the finest zones collect the zones' volumes, masses and radial momenta, each zone's spread
!> evenly over the radii that it covers. A shell's mean density, times its true volume, is its mass, so that the mass within
!> a radius has no noise from the distribution of zones over shells. Within a shell the mean density is used, so that
!> gravity is exactly proportional to the radius where the density is constant. Half a step ahead, which makes the sources
!> of second order in time, the mass within a radius has changed by what flows through it.
!>
!> Sums over leaves are sums of integers, in units of 2^-60 of the largest possible sums, so that they do not depend on
!> ranks or threads.
!>
!> An ambient gas has no weight: the force on a zone is that on the density above the ambient one. A thin atmosphere at
!> rest around a star therefore stays at rest, without a jump of weight at the star's surface.
module ember_gravity
    use ember_container, only: load_interior
    use ember_mesh, only: mesh_t, v_dens, v_momx, v_momy
    use ember_parallel, only: comm_t
    use pw_kinds, only: i8, r8
    implicit none
    private

    !> Newton's constant, CODATA 2022 [cm^3/(g s^2)].
    real(r8), parameter, public :: newton = 6.67430e-8_r8

    real(r8), parameter :: pi = acos(-1.0_r8), sphere = 4.0_r8*pi/3.0_r8
    real(r8), parameter :: units = 2.0_r8**60
    integer, parameter :: of_volume = 1, of_mass = 2, of_momentum = 3, of_width = 4, n_sums = 4

    type, public :: gravity_t
        logical :: on = .false.
        real(r8) :: ambient = 0.0_r8                 !< density of the gas without weight [g/cm^3]
        real(r8), private :: largest_density = 1.0_r8, largest_speed = 1.0_r8
        real(r8), private :: width = 1.0_r8          ! of shells [cm]
        real(r8), allocatable, private :: mass(:)    ! (0:) within the upper edge of each shell [g]
        real(r8), allocatable, private :: mean(:)    ! densities of shells [g/cm^3]
    contains
        procedure :: start
        procedure :: measure
        procedure :: pull_block
        procedure :: energy
        procedure, private :: shell_volume
    end type gravity_t

contains

    !> Gravity on a mesh whose densities and speeds will always be far below `largest_density` and `largest_speed`.
    subroutine start(self, mesh, ambient, largest_density, largest_speed)
        class(gravity_t), intent(inout) :: self
        type(mesh_t), intent(in) :: mesh
        real(r8), intent(in) :: ambient, largest_density, largest_speed
        real(r8) :: finest(3), corner(2)
        integer :: n

        self%on = .true.
        self%ambient = ambient
        self%largest_density = largest_density
        self%largest_speed = largest_speed
        finest = mesh%zone_size(mesh%highest_level)
        self%width = 0.5_r8*minval(finest(:2))
        corner = max(abs(mesh%lower(:2)), abs(mesh%upper(:2)))
        n = int(norm2(corner)/self%width) + 2
        allocate (self%mass(0:n), self%mean(n), source=0.0_r8)
    end subroutine start

    !> Compute the mass within each radius, `ahead` [s] from now. Called by all ranks.
    subroutine measure(self, mesh, comm, interval)
        class(gravity_t), intent(inout) :: self
        type(mesh_t), intent(in) :: mesh
        type(comm_t), intent(in) :: comm
        real(r8), intent(in) :: interval
        real(r8), allocatable :: variables(:, :, :, :), sums(:, :)
        integer(i8), allocatable :: total(:, :), mine(:, :), all(:)
        real(r8) :: scale(n_sums), volume, momentum(size(self%mean)), square(size(self%mean)), edge
        integer :: i, k, n, first, last

        n = size(self%mean)
        scale(of_volume) = units/product(mesh%upper(:2) - mesh%lower(:2))/maxval(abs(mesh%upper(:1)))
        scale(of_mass) = scale(of_volume)/self%largest_density
        scale(of_momentum) = scale(of_mass)/self%largest_speed
        scale(of_width) = scale(of_volume)/maxval(mesh%upper(:2) - mesh%lower(:2))**2
        allocate (total(n_sums, n), source=0_i8)
        !$omp parallel private(variables, sums, mine, i, k, first, last)
        allocate (variables(mesh%n_used(), mesh%block, mesh%block, 1), sums(n_sums, n), mine(n_sums, n))
        mine = 0
        !$omp do schedule(static)
        do i = 1, size(mesh%local)
            call sum_leaf(self, mesh, mesh%local(i), variables, sums, first, last)
            do k = first, last
                mine(:, k) = mine(:, k) + int(scale*sums(:, k), i8)
            end do
        end do
        !$omp end do
        !$omp critical
        total = total + mine
        !$omp end critical
        !$omp end parallel
        if (mesh%n_ranks > 1) then
            call comm%all_gather(reshape(total, [size(total)]), all)
            total = 0
            do i = 0, mesh%n_ranks - 1
                total = total + reshape(all(i*size(total) + 1:(i + 1)*size(total)), shape(total))
            end do
        end if

        do k = 1, n
            volume = max(real(total(of_volume, k), r8)/scale(of_volume), tiny(1.0_r8))
            self%mean(k) = real(total(of_mass, k), r8)/scale(of_mass)/volume
            momentum(k) = real(total(of_momentum, k), r8)/scale(of_momentum)/volume
            square(k) = real(total(of_width, k), r8)/scale(of_width)/volume
        end do
        call sharpen(self%width, square, self%mean)
        do k = 1, n
            self%mass(k) = self%mass(k - 1) + self%mean(k)*self%shell_volume(k)
        end do
        do k = 1, n - 1
            edge = k*self%width
            self%mass(k) = self%mass(k) - interval*4.0_r8*pi*edge**2*0.5_r8*(momentum(k) + momentum(k + 1))
        end do
        do k = 1, n
            self%mean(k) = (self%mass(k) - self%mass(k - 1))/self%shell_volume(k)
        end do
    end subroutine measure

    !> Subtract from the mean densities of shells the effect of spreading zones over radii: for zones of width w (`square`,
    !> w^2) that is w^2/24 (rho'' + 4 rho'/r) to second order. Where that is not small, the density is not smooth, and it
    !> is left unchanged.
    pure subroutine sharpen(width, square, mean)
        real(r8), intent(in) :: width, square(:)
        real(r8), intent(inout) :: mean(:)
        real(r8) :: before(-1:size(mean)), radius, change
        real(r8), parameter :: most = 0.1_r8
        integer :: k, n

        ! The density is the same on both sides of the centre. Differences over the width of a finest zone, two shells.
        n = size(mean)
        before(1:n) = mean
        before(-1:0) = mean([2, 1])
        do k = 1, n - 2
            radius = (k - 0.5_r8)*width
            change = square(k)/24.0_r8*((before(k + 2) - 2.0_r8*before(k) + before(k - 2))/(4.0_r8*width**2) &
                                        + 4.0_r8/radius*(before(k + 2) - before(k - 2))/(4.0_r8*width))
            if (abs(change) < most*before(k)) mean(k) = before(k) - change
        end do
    end subroutine sharpen

    !> Volume of shell k [cm^3].
    pure real(r8) function shell_volume(self, k)
        class(gravity_t), intent(in) :: self
        integer, intent(in) :: k

        shell_volume = sphere*self%width**3*(3.0_r8*real(k, r8)*(k - 1) + 1.0_r8)
    end function shell_volume

    !> Volumes, masses, radial momenta, and volumes times widths squared, per radian, of a leaf's zones in shells `first` to
    !> `last`; `variables` is work space.
    subroutine sum_leaf(self, mesh, leaf, variables, sums, first, last)
        type(gravity_t), intent(in) :: self
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: leaf
        real(r8), contiguous, intent(inout) :: variables(:, :, :, :), sums(:, :)
        integer, intent(out) :: first, last
        real(r8) :: volume(mesh%first:mesh%last), width(3), x(mesh%block), y(mesh%block)
        real(r8) :: radius, reach, low, high, share, amount(n_sums)
        integer :: i, j, k, k_low, k_high

        call load_interior(mesh, mesh%slot(leaf), variables)
        volume = mesh%zone_volumes(leaf)
        width = mesh%zone_size(mesh%tree%level(leaf))
        x = places(mesh, leaf, 1, 1, mesh%block)
        y = places(mesh, leaf, 2, 1, mesh%block)
        ! No zone of the block is nearer to the origin than the nearest of its edges, or farther than the farthest.
        radius = hypot(max(0.0_r8, x(1) - width(1)), max(0.0_r8, minval(abs(y)) - width(2)))
        first = max(1, min(size(sums, 2), int(radius/self%width) - 1))
        radius = hypot(x(mesh%block) + width(1), maxval(abs(y)) + width(2))
        last = min(size(sums, 2), int(radius/self%width) + 2)
        sums(:, first:last) = 0.0_r8
        do j = 1, mesh%block
            do i = 1, mesh%block
                radius = sqrt(x(i)**2 + y(j)**2)
                ! The mean square of the distance from its middle is that of the zone.
                reach = 0.5_r8*sqrt((x(i)*width(1))**2 + (y(j)*width(2))**2)/radius
                low = max(0.0_r8, radius - reach)/self%width
                high = (radius + reach)/self%width
                amount(of_volume) = volume(i)/(high - low)
                amount(of_mass) = amount(of_volume)*variables(v_dens, i, j, 1)
                amount(of_momentum) = amount(of_volume)*(x(i)*variables(v_momx, i, j, 1) + y(j)*variables(v_momy, i, j, 1))/radius
                amount(of_width) = amount(of_volume)*(2.0_r8*reach)**2
                k_low = int(low) + 1
                k_high = min(int(high) + 1, last)
                do k = k_low, k_high
                    share = min(high, real(k, r8)) - max(low, real(k - 1, r8))
                    sums(:, k) = sums(:, k) + share*amount
                end do
            end do
        end do
    end subroutine sum_leaf

    !> The centres of the zones `first` to `last` of a leaf in a direction: the same numbers from every leaf.
    pure function places(mesh, leaf, direction, first, last) result(x)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: leaf, direction, first, last
        real(r8) :: x(first:last), width(3)
        integer :: i

        width = mesh%zone_size(mesh%tree%level(leaf))
        do i = first, last
            x(i) = mesh%lower(direction) + (real(mesh%block*mesh%tree%place(direction, leaf) + i, r8) - 0.5_r8)*width(direction)
        end do
    end function places

    !> The acceleration of a leaf's zones, guard cells included, (zone, direction, row) [cm/s^2]. The array may be larger in
    !> its first index, which begins at `offset`.
    subroutine pull_block(self, mesh, leaf, offset, pull)
        class(gravity_t), intent(in) :: self
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: leaf, offset
        real(r8), contiguous, intent(inout) :: pull(offset:, :, mesh%first:)
        real(r8) :: x(mesh%first:mesh%last), y(mesh%first:mesh%last), cube, mass, attraction, radius
        integer :: i, j, k, n

        n = size(self%mean)
        x = places(mesh, leaf, 1, mesh%first, mesh%last)
        y = places(mesh, leaf, 2, mesh%first, mesh%last)
        do j = mesh%first, mesh%last
            do i = mesh%first, mesh%last
                radius = sqrt(x(i)**2 + y(j)**2)
                cube = radius**3
                k = min(int(radius/self%width), n - 1)
                mass = self%mass(k) + sphere*self%mean(k + 1)*(cube - (k*self%width)**3)
                attraction = -newton*mass/cube
                pull(i, 1, j) = attraction*x(i)
                pull(i, 2, j) = attraction*y(j)
            end do
        end do
    end subroutine pull_block

    !> The gravitational energy of the shells, as `measure` left them [erg].
    pure real(r8) function energy(self)
        class(gravity_t), intent(in) :: self
        integer :: k

        energy = 0.0_r8
        do k = 1, size(self%mean)
            energy = energy - newton*0.5_r8*(self%mass(k) + self%mass(k - 1))*(self%mass(k) - self%mass(k - 1)) &
                     /((k - 0.5_r8)*self%width)
        end do
    end function energy

end module ember_gravity
